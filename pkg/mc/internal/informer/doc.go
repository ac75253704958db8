// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer keeps the caches of a cluster in step with it.
//
// A [Set] makes the informers of one cluster and carries out their requests:
//
//	set := informer.NewSet(logger)
//	config.Transport = set.Transport(next)
//	options.Cache.NewInformer = set.New
//
// The fleet has a set for each member cluster, and the manager has one for the local
// cluster.
//
// client-go's reflector waits for up to a minute after errors, and nothing can end
// that wait. So the transport of the set hides errors from it that concern all
// requests: no response, 401, 500, 502, 503, 504. It sends the request again, with
// a backoff that ends when another request of the cluster succeeds or [Set.Resume]
// is called. After [Set.Hold] nothing is sent until Resume. Other responses, such as
// 403 and 404, reach the reflector.
//
// A reflector lists all objects after a watch that ended within a second and without
// an event. So the transport starts such a watch again, and delays the end of one that
// has just listed. Watches that end at once again and again are delayed by up to 30 s.
//
// A cluster that is restored from a backup has earlier resource versions than the
// caches. A watch that continues from a later one gets no events, and objects that
// were lost stay in the cache. So after a connection was lost, the set compares the
// cluster's resource version with those of the caches, with one request for all.
// If the cluster's is earlier, all caches list again, and their handlers get the
// differences. A resource version that the cluster has passed again by then cannot
// be recognized.
//
// Stopped watches leave no goroutine behind.
package informer
