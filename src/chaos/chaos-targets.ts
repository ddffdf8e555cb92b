/**
 * @module
 * What faults can be aimed at: the tools, dependencies and upstream servers of this process. Never
 * at the tools that look after it.
 */
import type { FaultSpec } from './fault.ts';

/**
 * What an upstream server lends to faults that only it can bring about. The gateway registers
 * them for each of its upstreams.
 */
export interface UpstreamHooks {
  /** Kills the process of the upstream, as a crash would. Absent where it has none. */
  readonly exit?: () => void;
  /** Has the upstream forget our session. Absent where it has none. */
  readonly loseSession?: () => void;
}

/** A tool, and the dependency whose pipeline protects it, if one does. */
export interface ToolTarget {
  readonly tool: string;
  readonly dependency?: string;
}

const HOOKS = { upstream_exit: 'exit', session_loss: 'loseSession' } as const;

const namesOf = (names: Iterable<string>): string => [...names].join(', ') || 'none';

export class ChaosTargets {
  readonly #tools = new Map<string, ToolTarget>();
  readonly #excluded: ReadonlySet<string>;
  readonly #upstreams = new Map<string, UpstreamHooks>();

  /**
   * @param tools those that may be struck
   * @param excluded names of tools that never may, for an error that says so
   */
  constructor(tools: readonly ToolTarget[], excluded: readonly string[] = []) {
    this.#excluded = new Set(excluded);
    for (const target of tools) {
      if (!this.#excluded.has(target.tool)) this.#tools.set(target.tool, target);
    }
  }

  get tools(): readonly ToolTarget[] {
    return [...this.#tools.values()];
  }

  /** Names of the dependencies that a tool calls. */
  get dependencies(): readonly string[] {
    return [...new Set(this.tools.flatMap(({ dependency }) => dependency ?? []))];
  }

  get upstreams(): readonly string[] {
    return [...this.#upstreams.keys()];
  }

  /** Dependency of a tool. */
  dependencyOf(tool: string): string | undefined {
    return this.#tools.get(tool)?.dependency;
  }

  /** Makes an upstream a target; the returned function takes it back. */
  addUpstream(name: string, hooks: UpstreamHooks = {}): () => void {
    this.#upstreams.set(name, hooks);
    return () => {
      if (this.#upstreams.get(name) === hooks) this.#upstreams.delete(name);
    };
  }

  /** Has the upstream do what only it can. */
  act(kind: 'upstream_exit' | 'session_loss', upstream: string | undefined): void {
    if (upstream !== undefined) this.#upstreams.get(upstream)?.[HOOKS[kind]]?.();
  }

  /** Why a fault cannot be aimed where it is; undefined when it can. */
  problem({ kind, target }: Pick<FaultSpec, 'kind' | 'target'>): string | undefined {
    const { tool, dependency, upstream } = target;
    if (tool !== undefined && this.#excluded.has(tool)) {
      return `${tool} is never a target: it is needed to see and to end what goes on`;
    }
    if (tool !== undefined && !this.#tools.has(tool)) {
      return `target.tool: there is no tool "${tool}"; there are ${namesOf(this.#tools.keys())}`;
    }
    if (dependency !== undefined && !this.dependencies.includes(dependency)) {
      return `target.dependency: there is no dependency "${dependency}"; there are ${namesOf(this.dependencies)}`;
    }
    if (upstream !== undefined && !this.#upstreams.has(upstream)) {
      return `target.upstream: there is no upstream "${upstream}"; there are ${namesOf(this.#upstreams.keys())}`;
    }
    const own = tool === undefined ? undefined : this.#tools.get(tool)?.dependency;
    if (tool !== undefined && dependency !== undefined && own !== dependency) {
      return `target: ${tool} calls ${own ?? 'no dependency'}, not ${dependency}; name one of the two`;
    }
    const hooks = upstream === undefined ? undefined : this.#upstreams.get(upstream);
    if ((kind === 'upstream_exit' || kind === 'session_loss') && !hooks?.[HOOKS[kind]]) {
      const lacking = kind === 'upstream_exit' ? 'no process of ours' : 'no session';
      return `kind ${kind}: the upstream "${upstream ?? ''}" has ${lacking} that could be ended`;
    }
    return undefined;
  }
}
