import type { Requirement } from '../requirements.ts';

const traces = 'issue 4, Stack test; design 4';
const metrics = 'issue 4, The three metric-name traps';
const pipeline = 'issue 4, otel/';

/** The stack: Collector, Jaeger, Prometheus, rules and dashboards. */
export const requirements = {
  O07: {
    promise:
      'no panel and no variable of the dashboards is empty, but for those listed with a reason',
    source:
      'cases.md O07: docker-otel-lgtm#28, application-study-tool#174, opentelemetry-demo#2904',
  },
  'stack.only-places-change': {
    promise: 'the stack test changes hosts, ports and paths of our files, and nothing else',
    source: 'issue 4, Stack test',
  },
  'stack.only-durations-change': {
    promise: 'the stack test changes durations of the rules, and nothing else',
    source: 'issue 4, Stack test',
  },
  'stack.programs-pinned': {
    promise:
      'the programs are built from modules at pinned versions, the Collector with the components of its file',
    source: 'issue 4, Stack test',
  },
  'stack.agreement': {
    promise:
      'each part of the stack looks for the others by the names and ports that they have, in containers and from outside',
    source: 'issue 4, docker-compose.yml',
  },
  'stack.images-pinned': {
    promise: 'every image has a whole version, and that which the stack test builds',
    source: 'issue 4, docker-compose.yml',
  },
  'stack.units-agree': {
    promise: 'span metrics have one namespace and unit in Collector, Jaeger and Prometheus',
    source: pipeline,
  },
  'stack.survives': {
    promise:
      'what waits in the Collector and what Jaeger and Prometheus have outlives their restart',
    source: pipeline,
  },
  'stack.loopback': {
    promise: 'no port is reachable from outside, no two clash, and there is no default password',
    source: 'issue 4, docker-compose.yml',
  },
  'stack.image': {
    promise:
      'the image is built in stages on the pinned Node, without development packages, and runs without root on a read-only file system',
    source: 'issue 4, Dockerfile',
  },
  'stack.files-valid': {
    promise:
      'the Collector, Prometheus and promtool find nothing wrong with our files, and the tests of the rules pass',
    source: pipeline,
  },
  'stack.compose-valid': {
    promise:
      'Docker Compose understands docker-compose.yml, and no port is published beyond loopback',
    source: 'issue 4, docker-compose.yml',
  },
  'stack.parent-chain': {
    promise:
      'the span of the client, of the call, of each attempt and of each request stand in one tree in Jaeger',
    source: traces,
  },
  'stack.stdio-chain': {
    promise:
      'over stdio the trace is whole too; a malformed traceparent is ignored, and baggage is recorded nowhere',
    source: 'cases.md O04',
  },
  'stack.events': {
    promise:
      'what the policies did stands on the span of the call in Jaeger, and by its name in the log of the Collector',
    source: traces,
  },
  'stack.values': {
    promise:
      'each counted call, retry, timeout, refusal and transition has its exact value in Prometheus',
    source: traces,
  },
  'stack.born-at-one': {
    promise: 'the first event that a counter counts is an increase of one in Prometheus',
    source: 'issue 4, otel/',
  },
  'stack.drill': {
    promise:
      'every panel of the dashboard of drills shows a real drill, and says what its verdict says',
    source: "issue 5, the stack's Drill dashboard is fed by a real drill",
  },
  'stack.faulted-traces': {
    promise: 'the trace of every call that an injected fault met is in Jaeger, and says so',
    source: 'issue 5, Honesty in telemetry; issue 4, otel/',
  },
  'stack.trace-links': {
    promise: 'links from panels to traces find some, in whatever namespace a service is',
    source: 'issue 4, grafana/',
  },
  'stack.refused': {
    promise:
      'a Collector whose memory is used up turns telemetry away so that senders try again, and an alert says so',
    source: pipeline,
  },
  'stack.lost': {
    promise: 'an alert says so when the Collector gives up on what Prometheus refuses for good',
    source: pipeline,
  },
  'stack.points': {
    promise:
      'points that Prometheus would refuse with all that is in their request cost no other server a point: the Collector drops and counts them, and the runbook finds their server',
    source: pipeline,
  },
  'stack.points-window': {
    promise:
      'Prometheus takes what the Collector lets through, however long it waits in the queue there',
    source: pipeline,
  },
  'stack.names': {
    promise:
      'each metric of the contract is called in Prometheus what dashboards and rules call it',
    source: metrics,
  },
  'stack.seconds': {
    promise: 'durations are seconds in Prometheus, by name and by value',
    source: metrics,
  },
  'stack.one-total': {
    promise: 'counters end in _total once, and nothing else does',
    source: metrics,
  },
  'stack.no-ratio': {
    promise: 'no gauge of ours is called a ratio',
    source: metrics,
  },
  'stack.resource-labels': {
    promise:
      'job, instance and version of a server are labels, and no part of the stack is taken for a server',
    source: pipeline,
  },
  'stack.exemplars': {
    promise: 'every exemplar of failed calls leads to a trace that Jaeger has',
    source: pipeline,
  },
  'stack.monitor': {
    promise: 'the Monitor tab of Jaeger shows latencies, rates and errors of our operations',
    source: pipeline,
  },
  'stack.sampling': {
    promise:
      'every failed, slow, degraded, refused, retried and fault-injected trace is kept and a share of the rest, and span metrics count all of them',
    source: pipeline,
  },
  'stack.redaction': {
    promise: 'secrets in attributes, events and status texts do not reach Jaeger',
    source: pipeline,
  },
  'stack.jaeger-away': {
    promise:
      'no span is lost while Jaeger is away for 30 s, though the Collector is killed in between, and none of before',
    source: pipeline,
  },
  'stack.alerts-fire': {
    promise: 'every alert fires in the real Prometheus when what it is there for happens',
    source: 'issue 4, Stack test',
  },
  'stack.alerts-resolve': {
    promise: 'every alert resolves when it is over',
    source: 'issue 4, Stack test',
  },
  'stack.prometheus-away': {
    promise: 'no value is lost while Prometheus is away',
    source: pipeline,
  },
  // Dashboards, rules and runbook
  'prometheus.names': {
    promise:
      'names in Prometheus follow the rules of OpenTelemetry: the unit once, _total once and on counters alone, _ratio on gauges of unit 1 alone',
    source: metrics,
  },
  'dashboards.real-sources': {
    promise:
      'the metrics of Node.js and HTTP that dashboards rely on are those that a real server sends, by name, unit, kind and attributes',
    source: 'cases.md O06: thur#93, openlit#731, opentelemetry-js#3466',
  },
  'dashboards.fresh': {
    promise: 'the committed dashboards and their page are what the code makes',
    source: 'issue 4, grafana/',
  },
  'dashboards.complete': {
    promise:
      'every panel has a unit, a title, the question it answers, what bad looks like, and its data source from a variable',
    source: 'issue 4, grafana/; cases.md O07',
  },
  'dashboards.known-names': {
    promise: 'every query of a dashboard names only series and labels that something makes',
    source: 'cases.md O06: thur#93, openlit#731, opentelemetry-js#3466',
  },
  'dashboards.variables': {
    promise: 'every variable that a dashboard uses is one that it has, and the other way round',
    source: 'issue 4, grafana/',
  },
  'dashboards.layout': {
    promise: 'no panel lies over another, and no line has a hole',
    source: 'issue 4, grafana/',
  },
  'dashboards.expected-empty': {
    promise: 'each panel that may be empty exists and has a reason',
    source: 'issue 4, Stack test',
  },
  'rules.known-names': {
    promise: 'every rule names only series and labels that something makes',
    source: 'cases.md O06: thur#93, openlit#731, opentelemetry-js#3466',
  },
  'rules.our-fault': {
    promise:
      'the error budget counts neither what the caller is to mend, nor what the tool itself says, nor what an injected fault caused',
    source: 'issue 4, otel/; design 5, isError results are the tool speaking',
  },
  'rules.tested': {
    promise:
      'for each alert promtool has a case where it fires and resolves, and one that is near and spares it',
    source: 'issue 4, otel/',
  },
  'rules.explained': {
    promise: 'each alert has a section of the runbook, with the same seven answers',
    source: 'issue 4, otel/',
  },
} as const satisfies Record<string, Requirement>;
