import type { Requirement } from '../requirements.ts';

/** Start, export, shutdown, snapshot and the signal contract. */
export const requirements = {
  O01: {
    promise:
      'a collector that refuses or never answers does not keep a process from ending on SIGTERM with its own exit code',
    source: 'cases.md O01: opentelemetry-js-contrib#3349, n8n PR#37203',
  },
  O03: {
    promise:
      'an upstream called from an ES module, by fetch or node:http, receives the traceparent of the active trace without import hooks',
    source: 'cases.md O03: opentelemetry-js#5024, #2779, #6489; inngest-js#1564',
  },
  O06: {
    promise: 'no counter is named with _total, and a Prometheus scrape shows exactly one',
    source: 'cases.md O06: metebalci/thur#93, openlit#731, opentelemetry-js#3466',
  },
  'telemetry.no-endpoint-silent': {
    promise: 'without an endpoint nothing is exported, nothing is printed and nothing complains',
    source: 'design 4',
  },
  'telemetry.snapshot-without-endpoint': {
    promise: 'metrics are readable in the process although nothing is exported',
    source: 'design 2, snapshot.ts',
  },
  'telemetry.contract-exported': {
    promise:
      'every metric arrives at a collector with the name, unit, kind and buckets of the contract',
    source: 'design 4',
  },
  'telemetry.events-exported': {
    promise: 'an event arrives as a log record of the active trace and on the active span',
    source: 'design 4',
  },
  'telemetry.exporter-selection': {
    promise:
      'exporters, endpoints and protocols are those of the OTEL_* variables, signal by signal',
    source: 'design 4; OpenTelemetry specification, SDK environment variables',
  },
  'telemetry.sampler-and-headers': {
    promise: 'sampler, headers, compression and resource of the OTEL_* variables are honoured',
    source: 'design 4; OpenTelemetry specification, SDK environment variables',
  },
  'telemetry.resource-private': {
    promise:
      'the resource names service, version and instance, and holds no command line, owner, host or environment',
    source: 'design 4',
  },
  'telemetry.detectors-opt-in': {
    promise: 'OTEL_NODE_RESOURCE_DETECTORS adds what it names',
    source: 'design 4',
  },
  'telemetry.query-redacted': {
    promise: 'the values in the query of a URL reach no span, incoming or outgoing',
    source: 'design 4: arguments are off unless opted in',
  },
  'telemetry.own-exports-invisible': {
    promise: 'requests that carry telemetry make no span and do not count in HTTP metrics',
    source: 'design 4',
  },
  'telemetry.baggage-stays': {
    promise: 'baggage is not passed on unless OTEL_PROPAGATORS asks for it',
    source: 'cases.md O04',
  },
  'telemetry.early-tracers': {
    promise: 'tracers handed out before the start record after it',
    source: 'design 4; the API is loaded once by import and once by require',
  },
  'telemetry.disabled': {
    promise: 'OTEL_SDK_DISABLED=true starts nothing',
    source: 'OpenTelemetry specification, SDK environment variables',
  },
  'telemetry.start-once': {
    promise: 'a second start in a process returns what the first one started',
    source: 'start.ts',
  },
  'telemetry.foreign-sdk': {
    promise: 'an SDK registered before is left alone, and carries what we emit',
    source: 'start.ts',
  },
  'telemetry.unusable-endpoint': {
    promise: 'an endpoint that is no URL is reported on stderr, and never replaced by localhost',
    source: 'start.ts; the exporters fall back to localhost without a word',
  },
  'telemetry.bounded-end': {
    promise: 'flush and shutdown never reject, end within their bound of under 2 s, and run once',
    source: 'design 4',
  },
  'telemetry.natural-exit': {
    promise: 'an export that is never answered does not keep a finished program from ending',
    source: 'design 4',
  },
  'telemetry.short-run': {
    promise: 'a program under --import that ends at once has its telemetry sent',
    source: 'register.ts',
  },
  'telemetry.signal-kept': {
    promise:
      'under --import a signal ends the program as without us, after its telemetry was sent; one that it handles is left to it',
    source: 'register.ts',
  },
  'telemetry.imports-instrumented': {
    promise: 'under --import, packages that the program imports are instrumented',
    source: 'register.ts',
  },
  'telemetry.diag-stderr': {
    promise: 'diagnostics go to stderr at every level, and a repeated complaint is held back',
    source: 'design 4',
  },
  'telemetry.stdout-guard': {
    promise: 'after guardStdout only its own stream reaches stdout, whatever else is written',
    source: 'design 4: stdio is sacred; cases.md P11',
  },
  'telemetry.percentiles': {
    promise:
      'count and mean of a snapshot are exact; percentiles never decrease and lie in the bucket of the exact one',
    source: 'design 2, snapshot.ts',
  },
  'telemetry.docs-match': {
    promise:
      'docs/telemetry.md lists exactly the spans, events, metrics and attributes of the contract',
    source: 'design 4',
  },
  'telemetry.naming': {
    promise: 'names and units of the contract follow the OpenTelemetry naming rules',
    source: 'OpenTelemetry semantic conventions, general naming and metrics',
  },
} as const satisfies Record<string, Requirement>;
