// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// PropertyOperator compares a property with the values of an expression.
type PropertyOperator string

const (
	// PropertyIn matches a property whose value is one of the values.
	PropertyIn PropertyOperator = "In"

	// PropertyNotIn matches a property whose value is none of the values, and a
	// missing property.
	PropertyNotIn PropertyOperator = "NotIn"

	// PropertyExists matches an existing property.
	PropertyExists PropertyOperator = "Exists"

	// PropertyDoesNotExist matches a missing property.
	PropertyDoesNotExist PropertyOperator = "DoesNotExist"

	// PropertyGreaterThan matches a quantity, such as 16 or 64Gi, above the one
	// value.
	PropertyGreaterThan PropertyOperator = "Gt"

	// PropertyLessThan matches a quantity below the one value.
	PropertyLessThan PropertyOperator = "Lt"
)

// PropertyExpression is a condition on one property of a profile, like a
// requirement of a label selector, but with any text as values.
type PropertyExpression struct {
	// Name of the property. Required. PropertyClusterID also matches
	// PropertyClusterIDAlias, as ClusterID does.
	Name string

	// Operator compares the property with Values. Required.
	Operator PropertyOperator

	// Values are at least one for In and NotIn, one quantity for Gt and Lt, and
	// none for Exists and DoesNotExist.
	Values []string
}

// quantityForm matches quantities that are cheap to compare. The author of a
// profile could otherwise make this process compute 1e999999999.
var quantityForm = regexp.MustCompile(`^[+-]?[0-9.]{1,40}([a-zA-Z]{0,2}|[eE][+-]?[0-9]{1,2})$`)

func parseQuantity(text string) (resource.Quantity, error) {
	if !quantityForm.MatchString(text) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

// property is Property, with the alias of the cluster's ID.
func property(profile *Profile, name string) (string, bool) {
	if name == PropertyClusterID {
		id := ClusterID(profile)
		return id, id != ""
	}
	return Property(profile, name)
}

func (e PropertyExpression) predicate() (Predicate, error) {
	if e.Name == "" {
		return nil, errors.New("the name must not be empty")
	}
	name, values := e.Name, slices.Clone(e.Values)
	switch e.Operator {
	case PropertyIn, PropertyNotIn:
		if len(values) == 0 {
			return nil, fmt.Errorf("operator %s needs values", e.Operator)
		}
		in := e.Operator == PropertyIn
		return func(profile *Profile) bool {
			value, ok := property(profile, name)
			return (ok && slices.Contains(values, value)) == in
		}, nil
	case PropertyExists, PropertyDoesNotExist:
		if len(values) > 0 {
			return nil, fmt.Errorf("operator %s takes no values", e.Operator)
		}
		exists := e.Operator == PropertyExists
		return func(profile *Profile) bool {
			_, ok := property(profile, name)
			return ok == exists
		}, nil
	case PropertyGreaterThan, PropertyLessThan:
		if len(values) != 1 {
			return nil, fmt.Errorf("operator %s takes one value", e.Operator)
		}
		limit, err := parseQuantity(values[0])
		if err != nil {
			return nil, fmt.Errorf("operator %s: %q: %w", e.Operator, values[0], err)
		}
		sign := 1
		if e.Operator == PropertyLessThan {
			sign = -1
		}
		return func(profile *Profile) bool {
			value, _ := property(profile, name)
			quantity, err := parseQuantity(value)
			return err == nil && quantity.Cmp(limit.DeepCopy()) == sign
		}, nil
	default:
		return nil, fmt.Errorf("unknown operator %q", e.Operator)
	}
}
