/**
 * @module
 * The live pipelines by name: what a health check lists, and the one place that keeps two
 * dependencies from being mixed up under one name.
 */
import type { PipelineOptions } from './call-options.ts';
import { createPipeline, type Pipeline } from './pipeline.ts';
import type { PolicySettings } from './policy.ts';

/**
 * Holds the pipelines of one server.
 *
 * @example
 * ```ts
 * import { PipelineRegistry, presets } from 'mcp-resilience';
 * const registry = new PipelineRegistry();
 * registry.create('weather-api', presets['public-api']);
 * for (const pipeline of registry) console.error(pipeline.name, pipeline.breaker?.state);
 * ```
 */
export class PipelineRegistry {
  readonly #pipelines = new Map<string, Pipeline>();
  readonly #options: PipelineOptions;

  /** @param options given to each pipeline that is made here */
  constructor(options: PipelineOptions = {}) {
    this.#options = options;
  }

  /**
   * Makes a pipeline and keeps it.
   *
   * @throws Error when the name is taken: two pipelines of one name would share every metric
   * series, and a reader could not tell which of them is open
   */
  create(name: string, settings: PolicySettings, options: PipelineOptions = {}): Pipeline {
    if (this.#pipelines.has(name)) {
      throw new Error(`a pipeline named "${name}" exists already: use get("${name}") to share it`);
    }
    const pipeline = createPipeline(name, settings, { ...this.#options, ...options });
    this.#pipelines.set(name, pipeline);
    return pipeline;
  }

  get(name: string): Pipeline | undefined {
    return this.#pipelines.get(name);
  }

  /** In the order they were made. */
  [Symbol.iterator](): IterableIterator<Pipeline> {
    return this.#pipelines.values();
  }

  /** Destroys and forgets all of them. */
  destroy(): void {
    for (const pipeline of this) pipeline.destroy();
    this.#pipelines.clear();
  }
}
