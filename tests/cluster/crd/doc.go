// Package crd names the Go types from which the schemas of PodMonitor and PrometheusRule are generated.
package crd

import (
	_ "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)
