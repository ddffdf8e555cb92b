import type { Requirement } from '../requirements.ts';

/** Faults that are injected, and everything that keeps them from being left behind. */
export const requirements = {
  X04: {
    promise:
      'an injected delay counts against the attempt timeout, a fault expires by itself, the tools are off and unlisted by default, and what a fault caused is marked',
    source: 'cases.md X04: our own inject_fault; mcp-failure-lab, agentgateway fault injection',
  },
  'chaos.kinds': {
    promise:
      'each kind of fault leads to the failure code and the breaker effect that its documentation says, through fetch, undici and node:http, with a kept connection',
    source: 'design 7; issue 5',
  },
  'chaos.like-the-real-thing': {
    promise: 'an injected HTTP fault is classified as the same fault of a real upstream',
    source: 'design 7: faults enter as the innermost stage',
  },
  'chaos.spans': {
    promise:
      'each kind marks the server span of the call and its HTTP span, which still shows the real upstream',
    source: 'design 4; issue 5, honesty in telemetry',
  },
  'chaos.selection': {
    promise:
      'first attempts, every k-th, percent by seed, flapping and ramp strike exactly the attempts that they say',
    source: 'design 7; issue 5',
  },
  'chaos.targets': {
    promise:
      'a target that is not known, is needed to end chaos, or cannot have that fault is refused with the names that can',
    source: 'design 7',
  },
  'chaos.dose': {
    promise: 'a fault strikes at most maxCount times, and no more than five are active',
    source: 'design 7; issue 5',
  },
  'chaos.nothing-left': {
    promise:
      'after ttl, halt, the end of the session, a killed client, SIGKILL and a restart no fault is active',
    source: 'issue 5',
  },
  'chaos.lets-go': {
    promise: 'calls that a fault holds go on when it ends, and those given up are never executed',
    source: 'issue 5: nothing can be left broken by accident',
  },
  'chaos.no-leak': {
    promise: 'a thousand rounds of arming and clearing leave no timer, listener, socket or memory',
    source: 'issue 5',
  },
  'chaos.executions': {
    promise:
      'whatever mix of faults strikes a tool that is not idempotent, it is never executed more often than it was called',
    source: 'issue 5, property test',
  },
  'chaos.dry-run': {
    promise:
      'a dry run arms nothing and counts the calls of the last five minutes it would be aimed at',
    source: 'design 7; issue 5',
  },
  'chaos.asks': {
    promise:
      'where the client can ask a person, nothing is armed unless the person accepts: decline, cancel and silence arm nothing',
    source: 'issue 5; MCP 2025-11-25, client/elicitation',
  },
  'chaos.secrets': {
    promise: 'a secret in the reason of a fault reaches neither logs nor spans nor answers',
    source: 'issue 5',
  },
  'chaos.auto-stop': {
    promise: 'when calls fail that no fault is aimed at, all faults end and it is said why',
    source: 'issue 5',
  },
  'chaos.production': {
    promise: 'chaos is refused where NODE_ENV is production, unless a second switch says so',
    source: 'design 7',
  },
  'chaos.node-http': {
    promise:
      'requests of node:http and node:https are struck however they were imported and whatever their agent, and leave nothing in it',
    source: 'design 7: faults enter as the innermost stage',
  },
  'chaos.own-server': {
    promise:
      'a server on the MCP SDK that uses the library has the chaos tools, its calls are struck and marked, and its upstream sees nothing of it',
    source: 'design 7; the package exports what serve --chaos uses',
  },
  'chaos.own-server-production': {
    promise: 'the library refuses fault injection in production, unless a second switch is set',
    source: 'design 7',
  },
  'chaos.marks': {
    promise:
      'events, spans and metric points that a fault caused carry fault.injected and fault.id, and no others do',
    source: 'design 4',
  },
  'chaos.marks-bulkhead': {
    promise:
      'a call that finds no place, because one that a fault struck keeps it, carries the mark of that fault',
    source: 'design 4; issue 5, honesty in telemetry',
  },
  'chaos.marks-breaker': {
    promise:
      'a breaker that a fault opened marks its transitions, its recovery and whom it refuses, until it fails for real',
    source: 'design 4; issue 5, honesty in telemetry',
  },
  'chaos.audit': {
    promise:
      'each fault that is armed, strikes or ends is a log record with who, why, whom, seed and counts',
    source: 'issue 5',
  },
  'chaos.playbook': {
    promise:
      'an agent finds the playbook as a resource and the drill as a prompt, which name targets and kinds that exist',
    source: 'issue 5',
  },
  'chaos.gateway-off': {
    promise:
      'without --chaos a gateway lists nothing of it; in production it is refused without the second switch',
    source: 'design 7; issue 6',
  },
  'chaos.gateway-offer': {
    promise:
      'with --chaos the chaos tools, playbook and drill stand beside what a server has, under names that give way, and nothing else is added',
    source: 'design 6; issues 5 and 6',
  },
  'chaos.gateway-targets': {
    promise:
      'faults can be aimed at each upstream and at the tools that clients see, whether or not somebody has listed them; any other target is refused with the names that exist, also after an edit of the configuration',
    source: 'issue 5',
  },
  'chaos.upstream-exit': {
    promise:
      'the child of an upstream is killed, what it worked on fails with a structured failure, all of it is marked, and it is started again',
    source: 'issue 5: upstream exit (gateway)',
  },
  'chaos.session-loss': {
    promise:
      'a session that is lost is initialised anew, and no call is executed twice because of it',
    source: 'issue 5: session loss (gateway)',
  },
  'chaos.gateway-calls': {
    promise:
      'latency, hang, tool error and protocol error strike the calls of one tool, or of one session, and no others',
    source: 'issue 5',
  },
  'chaos.gateway-http': {
    promise:
      'each HTTP fault strikes the requests of the gateway to a server over HTTP, with the failure code of the real thing and nothing executed',
    source: 'issue 5: HTTP faults',
  },
  'chaos.gateway-breaker': {
    promise: 'injected 503 open the breaker of a server over HTTP, which closes once they are gone',
    source: 'issue 5',
  },
  'chaos.gateway-ends': {
    promise:
      'behind a gateway, too, faults end by their time, by halt, with the session that armed them, and when bystanders fail; a person is asked where one can be',
    source: 'issue 5: nothing can be left broken by accident',
  },
  'chaos.gateway-executions': {
    promise:
      'whatever mix of faults strikes a write tool behind a gateway, a real server executes it at most once per call, and a caller who is told that it was not has been told the truth',
    source: 'issue 5, property test; issue 6',
  },
  'mcp.offer': {
    promise:
      'resources and prompts are listed, read and refused as the protocol says, and traced by their names',
    source: 'MCP 2025-11-25, server/resources, server/prompts',
  },
} as const satisfies Record<string, Requirement>;
