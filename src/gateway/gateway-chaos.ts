/**
 * @module
 * Fault injection as the gateway sees it: where it enters what goes to upstreams, and what clients
 * are offered to steer it. The gateway itself knows nothing of faults; without `--chaos` there is
 * none of this.
 */
import type { RequestOptions } from 'node:http';
import type { Prompt, Resource } from '../mcp/prompt.ts';
import type { Tool } from '../mcp/tool.ts';
import type { PipelineOptions } from '../resilience/call-options.ts';
import type { Json, UpstreamAddress } from './types.ts';

/**
 * `createConnection` for the HTTP request that is about to be made, where it is to go elsewhere;
 * undefined for one that goes where it belongs. Asked in the async context of the call.
 */
export type Divert = () => RequestOptions['createConnection'];

/** How an upstream is made to fail. What happens then is the real thing. */
export interface UpstreamFaultHooks {
  /** Its children are killed; a server over HTTP is cut off. */
  exit(): void;
  /** All sessions with it are gone, as when a server was started again. */
  loseSession(): void;
}

/** An upstream that faults can be aimed at. */
export interface FaultyUpstream {
  readonly name: string;
  readonly kind: UpstreamAddress['kind'];
  readonly hooks: UpstreamFaultHooks;
}

/** A call of a tool on its way to an upstream. */
interface RelayedCall {
  /** Name that the client used. */
  readonly tool: string;
  readonly upstream: string;
  /** Id of the client's session, where there is one. */
  readonly session: string | undefined;
  readonly signal: AbortSignal;
}

/** Fault injection that is on. */
export interface GatewayChaos {
  /** Given to the pipelines of all upstreams. */
  readonly inject: NonNullable<PipelineOptions['inject']>;
  readonly divert: Divert;
  /** Offered to clients besides what upstreams offer. */
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly prompts: readonly Prompt[];
  /** What models are told of it. */
  readonly instructions: string;
  /** There are these upstreams from now on. */
  readonly follow: (upstreams: readonly FaultyUpstream[]) => void;
  /** These of them have changed: what was known of their tools no longer holds. */
  readonly forget: (upstreams: readonly string[]) => void;
  /** Clients see these tools. */
  readonly learn: (tools: readonly { readonly shown: string; readonly upstream: string }[]) => void;
  /** Whether a request to what it offers is about tools that it has not learnt of. */
  readonly needsTools: (params: Json | undefined) => boolean;
  /** Makes a call, which faults may be aimed at. */
  readonly call: (call: RelayedCall, run: () => Promise<Json>) => Promise<Json>;
  /** Ends all faults, and lets go of the calls that they hold. */
  readonly close: () => Promise<void>;
}
