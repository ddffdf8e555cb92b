/**
 * @module
 * What faults can be aimed at: the tools, dependencies and upstream servers of this process. Never
 * at the tools that look after it.
 */
import { FAULT_KINDS, type FaultSpec, type HttpFaultKind, isHttpKind } from './fault.ts';

/**
 * What an upstream server lends to faults that only it can bring about. The gateway registers
 * them for each of its upstreams.
 */
export interface UpstreamHooks {
  /** Kills the process of the upstream, as a crash would. Absent where it has none. */
  readonly exit?: () => void;
  /** Has the upstream forget our session. Absent where it has none. */
  readonly loseSession?: () => void;
  /** HTTP faults that requests to it can meet. Default: none, it is not asked over HTTP. */
  readonly http?: readonly HttpFaultKind[];
}

/**
 * A tool, and the dependency whose pipeline protects it, or the upstream that has it.
 *
 * @example
 * ```ts
 * import type { ToolTarget } from 'mcp-resilience/chaos';
 * const protectedTool: ToolTarget = { tool: 'headlines', dependency: 'news-api' };
 * const bareTool: ToolTarget = { tool: 'clock' };
 * ```
 */
export interface ToolTarget {
  readonly tool: string;
  readonly dependency?: string;
  readonly upstream?: string;
}

/** Tools that are added at most: a peer says what there is. */
const MAX_TOOLS = 20_000;
/** Names that an error tells at most. */
const MAX_NAMED = 50;

const HOOKS = { upstream_exit: 'exit', session_loss: 'loseSession' } as const;

const namesOf = (names: Iterable<string>): string => {
  const all = [...names];
  const more = all.length > MAX_NAMED ? ` and ${all.length - MAX_NAMED} more` : '';
  return all.length === 0 ? 'none' : all.slice(0, MAX_NAMED).join(', ') + more;
};

/** Why an upstream cannot have a fault; undefined when it can. */
const lacking = (kind: FaultSpec['kind'], hooks: UpstreamHooks): string | undefined => {
  if (kind === 'upstream_exit' || kind === 'session_loss') {
    if (hooks[HOOKS[kind]]) return undefined;
    const what = kind === 'upstream_exit' ? 'no process of ours' : 'no session';
    return `has ${what} that could be ended`;
  }
  if (!isHttpKind(kind) || hooks.http?.includes(kind)) return undefined;
  return hooks.http === undefined
    ? 'is not asked over HTTP'
    : 'does not answer in the body of the response';
};

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
    this.addTools(tools);
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

  /** True for a tool that may be struck. */
  hasTool(tool: string): boolean {
    return this.#tools.has(tool);
  }

  /** Makes tools targets; those that never may be are left out. */
  addTools(tools: Iterable<ToolTarget>): void {
    for (const target of tools) {
      const { tool } = target;
      if (this.#excluded.has(tool)) continue;
      if (this.#tools.size < MAX_TOOLS || this.#tools.has(tool)) this.#tools.set(tool, target);
    }
  }

  /** Makes an upstream a target; the returned function takes it back, and its tools. */
  addUpstream(name: string, hooks: UpstreamHooks = {}): () => void {
    this.#upstreams.set(name, hooks);
    return () => {
      if (this.#upstreams.get(name) !== hooks) return;
      this.#upstreams.delete(name);
      for (const { tool, upstream } of this.tools) if (upstream === name) this.#tools.delete(tool);
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
    const known = tool === undefined ? undefined : this.#tools.get(tool);
    if (tool !== undefined && dependency !== undefined && known?.dependency !== dependency) {
      return `target: ${tool} calls ${known?.dependency ?? 'no dependency'}, not ${dependency}; name one of the two`;
    }
    if (tool !== undefined && upstream !== undefined && known?.upstream !== upstream) {
      return `target: ${tool} is a tool of ${known?.upstream ?? 'no upstream'}, not of ${upstream}; name one of the two`;
    }
    const struck = upstream ?? known?.upstream;
    if (struck === undefined) return undefined;
    const hooks = this.#upstreams.get(struck) ?? {};
    const problem = lacking(kind, hooks);
    if (problem === undefined) return undefined;
    const why = `kind ${kind}: the upstream "${struck}" ${problem}`;
    if (!isHttpKind(kind)) return why;
    const possible = FAULT_KINDS.filter((other) => lacking(other, hooks) === undefined);
    return `${why}; it can have ${possible.join(', ')}`;
  }
}
