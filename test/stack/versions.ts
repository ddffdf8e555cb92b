/**
 * @module
 * The releases that the stack consists of. The images of docker-compose.yml carry these numbers,
 * and the stack test builds the same releases from their Go modules.
 */

/** The Collector: core, the stable modules of core, and contrib are released together. */
export const COLLECTOR = {
  image: 'otel/opentelemetry-collector-contrib:0.161.0',
  version: '0.161.0',
  core: 'v0.161.0',
  stable: 'v1.67.0',
  contrib: 'v0.161.0',
} as const;

/** Jaeger 2.N is module version 1.(N + 63): the last that the Go proxy serves is 2.13. */
export const JAEGER = {
  image: 'jaegertracing/jaeger:2.13.0',
  version: '2.13.0',
  module: 'v1.76.0',
} as const;

/** Prometheus 3.NN.P is module version 0.3NN.P. */
export const PROMETHEUS = {
  image: 'prom/prometheus:v3.16.0',
  version: '3.16.0',
  module: 'v0.316.0',
} as const;
