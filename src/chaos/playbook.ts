/**
 * @module
 * How to run a drill safely and how to read what comes of it: for agents, as the MCP resource
 * `chaos://playbook` and the prompt `run_drill`.
 */
import type { Prompt, Resource } from '../mcp/prompt.ts';
import { DEFAULT_TTL, FAULT_KINDS, MAX_TTL } from './fault.ts';
import type { FaultRegistry } from './fault-registry.ts';

/** Names that are listed at most: behind a gateway there can be thousands. */
const MAX_NAMED = 50;

/** One drill by hand, step by step. */
interface HandDrill {
  readonly name: string;
  readonly hypothesis: string;
  /** Arguments of `inject_fault` beside the target. */
  readonly fault: Readonly<Record<string, unknown>>;
  readonly watch: string;
}

/** Drills that an agent can run with the tools alone. */
const HAND_DRILLS: readonly HandDrill[] = [
  {
    name: 'burst-503',
    hypothesis: 'A short burst of 503 is bridged by retries: callers see answers, not errors.',
    fault: { kind: 'status', status: 503, firstAttempts: 1, ttlSeconds: 60 },
    watch: 'Calls succeed; resilience.retry.attempts with outcome success grows.',
  },
  {
    name: 'hang',
    hypothesis:
      'A dependency that never answers is cut off by the attempt timeout, then its breaker opens and calls are refused at once.',
    fault: { kind: 'hang', ttlSeconds: 120 },
    watch:
      'Failures are TIMEOUT, then CIRCUIT_OPEN with retryAfter; other tools stay as fast as they were.',
  },
  {
    name: 'rate-limited',
    hypothesis: 'A 429 with Retry-After is waited for, and does not open the breaker.',
    fault: { kind: 'status', status: 429, retryAfter: 2, ttlSeconds: 60 },
    watch: 'No attempt earlier than Retry-After; the breaker of the dependency stays closed.',
  },
  {
    name: 'dns-outage',
    hypothesis: 'A name that cannot be resolved fails fast and opens the breaker.',
    fault: { kind: 'dns', dnsCode: 'ENOTFOUND', ttlSeconds: 60 },
    watch: 'Failures are DNS_FAILURE, then CIRCUIT_OPEN; a cached answer is marked degraded.',
  },
  {
    name: 'garbage-body',
    hypothesis: 'An answer that is not what the API promises is never taken for one.',
    fault: { kind: 'malformed_json', ttlSeconds: 60 },
    watch: 'Failures are UPSTREAM_INVALID_RESPONSE; a substitute is marked degraded.',
  },
  {
    name: 'recovery',
    hypothesis: 'Once the fault is gone, the breaker closes within two open times.',
    fault: { kind: 'connection_refused', ttlSeconds: 120 },
    watch:
      'After clear_fault: state half-open, then closed; resilience.circuit_breaker.recovery.duration has a value.',
  },
];

const STEPS = `1. **Hypothesis.** Write down what should happen, with figures, before anything is armed.
2. **Steady state.** Call \`health_check\`. When a dependency is not well already, stop: a drill would tell nothing.
3. **Dry run.** \`inject_fault\` with \`dryRun: true\` tells what the fault is aimed at and how many calls that were in the last five minutes. When it is more than you expected, narrow the target or lower \`percent\`.
4. **Arm** with the smallest dose that can show it: a short \`ttlSeconds\`, a \`maxCount\`, one tool rather than a dependency, and a \`reason\`. One fault at a time.
5. **Load.** Call the tool a few times, and another tool beside it, which should not notice.
6. **Clear.** \`clear_fault\` with the id; then \`list_faults\` must show none.
7. **Recovery.** Call the tool until it is as it was; \`health_check\` again.
8. **Verdict.** PASS or FAIL for each expectation, with the expected and the measured figure.`;

const SAFETY = `- At any sign of harm to others: \`halt_chaos\`. It ends everything at once and refuses new faults until \`lift: true\`.
- A fault ends by itself after \`ttlSeconds\` (${DEFAULT_TTL} unless you say otherwise, ${MAX_TTL} at most), when the session that armed it ends, and when the server restarts.
- When calls fail that no fault is aimed at, everything ends by itself, and \`list_faults\` tells why.
- \`health_check\` and the chaos tools are never struck.
- Where your client can ask a person, one is asked before a fault is armed. Declined means no: do not ask again.
- Never aim at what real users depend on without somebody's word for it.`;

const READING = `- \`injected\` counts attempts, not calls: a call that is retried can be struck more than once.
- \`missed\` above 0: attempts were chosen, but made no request through \`fetch\`, undici or \`node:http\`, so nothing happened to them. Do not take that for resilience.
- A call that **succeeds** although it was struck is the policies at work (retry, cache, fallback): look for \`degraded\` in the result.
- \`TIMEOUT\`, then \`CIRCUIT_OPEN\`: the breaker did its work. \`CIRCUIT_OPEN\` carries \`retryAfter\`.
- A call of **another** tool that fails or slows down is a finding, whatever the hypothesis says.
- Every span, event and metric point that a fault caused carries \`fault.injected=true\` and \`fault.id\`.
- \`mcp-resilience drill --list\` names drills that run by themselves and judge from telemetry.`;

const playbook = (faults: FaultRegistry): string => {
  const { tools, dependencies, upstreams } = faults.targets;
  const names = (list: readonly string[]) => {
    const more = list.length > MAX_NAMED ? ` and ${list.length - MAX_NAMED} more` : '';
    const named = list.slice(0, MAX_NAMED).map((name) => `\`${name}\``);
    return list.length === 0 ? 'none' : named.join(', ') + more;
  };
  return `# Chaos playbook

## What can be struck here
- Tools: ${names(tools.map(({ tool }) => tool))}
- Dependencies: ${names(dependencies)}
- Upstream servers: ${names(upstreams)}
- Kinds of fault: ${names(FAULT_KINDS)}

## A drill, step by step
${STEPS}

## Safety
${SAFETY}

## How to read it
${READING}

## Drills by hand
${HAND_DRILLS.map(({ name, hypothesis, watch, fault }) => `- **${name}**: ${hypothesis} \`${JSON.stringify(fault)}\` ${watch}`).join('\n')}
`;
};

/** The playbook as a resource; it names the targets of this very server. */
export const createPlaybook = (faults: FaultRegistry): Resource => ({
  uri: 'chaos://playbook',
  name: 'chaos-playbook',
  title: 'Chaos playbook',
  description: 'How to run a drill safely on this server, and how to read what comes of it.',
  mimeType: 'text/markdown',
  read: () => playbook(faults),
});

/** The prompt that has an agent run one drill. */
export const createRunDrillPrompt = (faults: FaultRegistry): Prompt => {
  const known = HAND_DRILLS.map(({ name }) => name).join(', ');
  return {
    name: 'run_drill',
    title: 'Run a drill',
    description: 'Runs one drill on this server with the chaos tools and gives a verdict.',
    arguments: [
      { name: 'drill', description: `Which drill: ${known}.`, required: true },
      { name: 'tool', description: 'Tool to strike. Default: the first that can be.' },
    ],
    text: ({ drill: wanted, tool: asked }) => {
      const drill = HAND_DRILLS.find(({ name }) => name === wanted);
      if (!drill) throw new Error(`drill must be one of ${known}; got "${wanted?.slice(0, 100)}"`);
      const tools = faults.targets.tools.map(({ tool }) => tool);
      const tool = asked ?? tools[0];
      if (tool === undefined || !tools.includes(tool)) {
        const known = tools.slice(0, MAX_NAMED).join(', ') || 'none';
        throw new Error(`tool must be one of ${known}${tools.length > MAX_NAMED ? ', …' : ''}`);
      }
      const call = JSON.stringify({
        ...drill.fault,
        target: { tool },
        reason: `drill ${drill.name}`,
      });
      return `Run the drill "${drill.name}" on the tool ${tool} of this server.

Hypothesis: ${drill.hypothesis}
Fault (arguments of inject_fault): ${call}
Watch: ${drill.watch}

Go step by step, and stop with halt_chaos at any sign of harm:
${STEPS}

Safety:
${SAFETY}

How to read it:
${READING}`;
    },
  };
};
