/**
 * @module
 * The policies of one upstream as live pipelines: one for all its requests, and where tools have
 * policies of their own, further ones inside it. What is shared by all tools (limits, breaker)
 * stands outside, what differs from tool to tool (time limits, retries) inside, so that a tool may
 * take longer than its upstream does as a rule.
 */
import type { Work } from '../resilience/attempt.ts';
import type { CallOptions, PipelineOptions } from '../resilience/call-options.ts';
import type { CircuitBreaker } from '../resilience/circuit-breaker.ts';
import { type Clock, systemClock } from '../resilience/clock.ts';
import { Deadline } from '../resilience/deadline.ts';
import { createPipeline, type Outcome, type Pipeline } from '../resilience/pipeline.ts';
import { overridePolicy, type PolicySettings, usualProbeLease } from '../resilience/policy.ts';
import type { UpstreamConfig } from './types.ts';

/** The pipelines that one call passes, outermost first, and its total time limit. */
interface Route {
  readonly outer: Pipeline;
  readonly inner: readonly Pipeline[];
  readonly deadline: number | undefined;
  /** Answers may be kept: by the outermost stage, which is the only one to have a cache. */
  readonly caches: boolean;
}

/** Policies of single attempts: those that a tool may have differently. */
type PerTool = Pick<PolicySettings, 'timeout' | 'retry' | 'hedge'>;

const perTool = ({ timeout, retry, hedge }: PolicySettings): PerTool => ({
  ...(timeout !== undefined && { timeout }),
  ...(retry !== undefined && { retry }),
  ...(hedge !== undefined && { hedge }),
});

/** A probe may take as long as the longest call of any tool. */
const longestLease = ({ policy, tools }: UpstreamConfig): number | undefined => {
  const policies = Object.values(tools).map((rule) => overridePolicy(policy, rule.policy ?? {}));
  const leases = [policy, ...policies].map(usualProbeLease);
  const known = leases.filter((lease) => lease !== undefined);
  return known.length === leases.length ? Math.max(...known) : undefined;
};

/** Settings as the pipelines of one upstream take them. */
const split = (config: UpstreamConfig) => {
  const { deadline, timeout: _timeout, retry: _retry, hedge: _hedge, ...shared } = config.policy;
  const lease = longestLease(config);
  const breaker = shared.breaker && {
    ...(lease !== undefined && { probeLease: lease }),
    ...shared.breaker,
  };
  return { deadline, shared, breaker, attempts: perTool(config.policy) };
};

/** The live policies of one upstream, shared by all sessions with it. */
export class UpstreamPolicies {
  readonly #clock: Clock;
  readonly #usual: Route;
  readonly #routes = new Map<string, Route>();
  /** Shortest silence that ends an attempt, of any tool, in milliseconds. */
  readonly shortestTimeout: number;

  /** @throws SettingsError with every setting that is wrong */
  constructor(config: UpstreamConfig, options: PipelineOptions = {}) {
    const { name } = config;
    // Results are judged call by call, and faults enter at the innermost stage alone, whatever
    // that stage is called.
    const { classifyResult: _, inject, ...common } = options;
    const innermost: PipelineOptions = inject
      ? { ...common, inject: (_stage, context, work) => inject(name, context, work) }
      : common;
    this.#clock = options.clock ?? systemClock;
    const timeouts = Object.values(config.tools).map((rule) => rule.policy?.timeout);
    this.shortestTimeout = Math.min(
      ...[config.policy.timeout, ...timeouts].map((timeout) => timeout ?? Number.POSITIVE_INFINITY),
    );
    const { deadline, shared, breaker, attempts } = split(config);
    const special = Object.entries(config.tools).filter(([, rule]) => rule.policy !== undefined);
    const caches = shared.cache !== undefined && shared.cache !== false;
    if (special.length === 0) {
      const settings = { ...shared, ...attempts, ...(breaker && { breaker }) };
      const outer = createPipeline(name, settings, innermost);
      this.#usual = { outer, inner: [], deadline, caches };
      return;
    }
    // A breaker that counts attempts must stand inside the retry, and so each of these tools has
    // one of its own.
    const perAttempt = breaker ? breaker.scope === 'attempt' : false;
    const outside: PolicySettings = breaker
      ? { ...shared, breaker: perAttempt ? false : breaker }
      : shared;
    const inside = { ...attempts, ...(breaker && perAttempt && { breaker }) };
    const outer = createPipeline(name, outside, common);
    const inner = [createPipeline(name, inside, innermost)];
    this.#usual = { outer, inner, deadline, caches };
    for (const [tool, rule] of special) {
      const { deadline: own = deadline, cache, ...policies } = rule.policy ?? {};
      const label = `${name}/${tool}`;
      const stage = createPipeline(label, overridePolicy(inside, policies), innermost);
      // An answer that is kept needs no place and no closed breaker.
      const route = cache
        ? { outer: createPipeline(label, { cache }, common), inner: [outer, stage] }
        : { outer, inner: [stage] };
      const kept = cache === undefined ? caches : cache !== false;
      this.#routes.set(tool, { ...route, deadline: own, caches: kept });
    }
  }

  /** That of the upstream itself: failures of the connection. */
  get breaker(): CircuitBreaker | undefined {
    const { outer, inner } = this.#usual;
    return outer.breaker ?? inner[0]?.breaker;
  }

  /** Whether answers of this tool may be kept. */
  caches(tool: string): boolean {
    return this.#route(tool).caches;
  }

  /**
   * Makes a protected call.
   *
   * @param tool upstream's own name of the tool; undefined for other methods
   */
  run<T>(tool: string | undefined, work: Work<T>, options: CallOptions<T>): Promise<Outcome<T>> {
    const { outer, inner, deadline } = this.#route(tool);
    const given = {
      ...options,
      ...(deadline !== undefined && { deadline: Deadline.after(deadline, this.#clock) }),
    };
    if (inner.length === 0) return outer.outcome(work, given);
    const { cacheKey: _, deadline: _deadline, ...rest } = given;
    return outer.outcome(nested(inner, work, rest), harmless(given));
  }

  /** Ends timers and metrics of all of them. */
  destroy(): void {
    for (const { outer, inner } of [this.#usual, ...this.#routes.values()]) {
      for (const stage of [outer, ...inner]) stage.destroy();
    }
  }

  #route(tool: string | undefined): Route {
    return (tool === undefined ? undefined : this.#routes.get(tool)) ?? this.#usual;
  }
}

/** Outer stages repeat nothing, and leave it to the innermost one to say that an answer is lost. */
const harmless = <T>(options: CallOptions<T>): CallOptions<T> => ({ ...options, idempotent: true });

/** The deadline of the outermost stage holds inside as well, by itself. */
const nested = <T>(
  stages: readonly Pipeline[],
  work: Work<T>,
  options: CallOptions<T>,
): Work<T> => {
  const [stage, ...inner] = stages;
  if (!stage) return work;
  const own = inner.length > 0 ? harmless(options) : options;
  return ({ signal }) => stage.execute(nested(inner, work, options), { ...own, signal });
};
