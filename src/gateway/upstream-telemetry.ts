/**
 * @module
 * What metrics, events and people are told of an upstream: its state, its restarts and how long
 * sessions with it lasted.
 */
import type { Attributes } from '@opentelemetry/api';
import {
  emitEvent,
  instruments,
  type Observed,
  observeMetrics,
  type Report,
} from '../telemetry/instruments.ts';
import * as semconv from '../telemetry/semconv.ts';
import { ATTR, EVENT } from '../telemetry/signals.ts';
import type { UpstreamIdentity } from './client-operation.ts';
import type { LinkEnd, UpstreamState } from './types.ts';

/** Every state: one metric series each. */
const STATES: readonly UpstreamState[] = ['connecting', 'ready', 'degraded', 'down'];

/** Reports one upstream until it is destroyed. */
export class UpstreamTelemetry implements Observed {
  readonly #identity: UpstreamIdentity;
  readonly #unobserve: () => void;
  #state: UpstreamState = 'connecting';

  constructor(identity: UpstreamIdentity) {
    this.#identity = identity;
    this.#unobserve = observeMetrics(this);
  }

  /**
   * It is in another state now.
   *
   * @param marks of the injected fault that brought it about
   */
  changed(from: UpstreamState, to: UpstreamState, reason: string | undefined, marks?: Attributes) {
    this.#state = to;
    emitEvent(EVENT.upstreamStateChanged, to === 'down' || to === 'degraded' ? 'warn' : 'info', {
      ...marks,
      [ATTR.upstreamName]: this.#identity.name,
      [ATTR.from]: from,
      [ATTR.to]: to,
      ...(reason !== undefined && { [ATTR.reason]: reason }),
    });
  }

  /** Its child is started again, or it is connected to again. */
  restarted(marks?: Attributes): void {
    const attributes = { [ATTR.upstreamName]: this.#identity.name, ...marks };
    instruments().upstreamRestarts.add(1, attributes);
  }

  /** @param seconds from `initialize` to the end of the session */
  sessionEnded(seconds: number, protocolVersion: string, end: LinkEnd): void {
    const protocol = this.#identity.network[semconv.ATTR_NETWORK_PROTOCOL_NAME];
    instruments().clientSessionDuration.record(seconds, {
      [semconv.ATTR_MCP_PROTOCOL_VERSION]: protocolVersion,
      ...(protocol !== undefined && { [semconv.ATTR_NETWORK_PROTOCOL_NAME]: protocol }),
      ...(end.kind !== 'closed' && { [semconv.ATTR_ERROR_TYPE]: end.kind }),
    });
  }

  /** @internal Reports the state series when metrics are collected. */
  observe(report: Report): void {
    for (const state of STATES) {
      report('upstreamState', state === this.#state ? 1 : 0, {
        [ATTR.upstreamName]: this.#identity.name,
        [ATTR.state]: state,
      });
    }
  }

  /** Ends its series. */
  destroy(): void {
    this.#unobserve();
  }
}
