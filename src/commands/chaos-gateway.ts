/**
 * @module
 * Fault injection in front of any server: what `chaos/` can do, as the gateway takes it. Neither of
 * the two knows the other.
 */
import { createChaos } from '../chaos/chaos.ts';
import type { UpstreamHooks } from '../chaos/chaos-targets.ts';
import { HTTP_KINDS, type HttpFaultKind } from '../chaos/fault.ts';
import type { FaultyUpstream, GatewayChaos } from '../gateway/gateway-chaos.ts';
import { HEALTH_CHECK } from '../gateway/health-tool.ts';
import type { Json } from '../gateway/types.ts';

export { chaosRefusal } from '../chaos/chaos.ts';

const INSTRUCTIONS =
  'Chaos is on: inject_fault makes calls fail on purpose. Read chaos://playbook before you use it; ' +
  'halt_chaos ends all of it.';

/** Over HTTP+SSE answers come on another stream: what is done to the body of a POST is not seen. */
const WITHOUT_BODY: readonly HttpFaultKind[] = [
  'status',
  'connection_refused',
  'connection_reset',
  'dns',
];

const hooksOf = ({ kind, hooks }: FaultyUpstream): UpstreamHooks => {
  if (kind === 'stdio') return { exit: () => hooks.exit() };
  const loseSession = () => hooks.loseSession();
  return { loseSession, http: kind === 'http' ? HTTP_KINDS : WITHOUT_BODY };
};

/** Switches fault injection on, for the gateway of this process. */
export const createGatewayChaos = (): GatewayChaos => {
  const chaos = createChaos({ targets: [], excluded: [HEALTH_CHECK], nodeHttp: false });
  const { targets } = chaos;
  const followed = new Map<string, () => void>();
  /** Name of the tool that a request for something of chaos is about. */
  const toolIn = ({ arguments: args }: Json): unknown => {
    const given = Object(args);
    return given.target === undefined ? given.tool : Object(given.target).tool;
  };
  return {
    inject: chaos.injectUpstreams,
    divert: chaos.divert,
    tools: chaos.tools,
    resources: chaos.resources,
    prompts: chaos.prompts,
    instructions: INSTRUCTIONS,
    follow: (upstreams) => {
      for (const upstream of upstreams) {
        if (followed.has(upstream.name)) continue;
        followed.set(upstream.name, targets.addUpstream(upstream.name, hooksOf(upstream)));
      }
    },
    forget: (upstreams) => {
      for (const name of upstreams) {
        followed.get(name)?.();
        followed.delete(name);
      }
    },
    learn: (tools) =>
      targets.addTools(tools.map(({ shown, upstream }) => ({ tool: shown, upstream }))),
    needsTools: (params = {}) => {
      const tool = toolIn(params);
      const isRead = typeof params.uri === 'string' || params.name === 'run_drill';
      if (typeof tool === 'string') return !targets.hasTool(tool);
      return isRead && targets.tools.length === 0;
    },
    call: ({ tool, upstream, session, signal }, run) =>
      // One that nobody has listed is no target, and its name anybody's invention.
      chaos.watchCall(
        { tool: targets.hasTool(tool) ? tool : undefined, upstream, session, signal },
        run,
      ),
    close: chaos.close,
  };
};
