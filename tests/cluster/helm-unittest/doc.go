// Package unittest pins the runner of the charts' unit tests.
package unittest
