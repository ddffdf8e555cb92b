/**
 * @module
 * What the parts of the gateway owe each other. From below to above:
 *
 * link (one connection that carries messages) -> upstream session (requests with an answer, on
 * a link that may be replaced) -> manager (all upstreams, their breakers, states and children)
 * -> catalog (what they offer, under which names) -> relay (one client session)
 *
 * Messages pass whole: what a part does not know of a message it hands on untouched.
 */
import type { JSONRPCMessage, RequestId } from '../mcp/jsonrpc.ts';
import type { PolicySettings } from '../resilience/policy.ts';

/** Any JSON object of the protocol, as it came. */
export type Json = Readonly<Record<string, unknown>>;

// ---------------------------------------------------------------------------------------------
// Configuration, with every default filled in (config.ts makes it).

/** How an upstream is reached. `http` is Streamable HTTP, `sse` the transport of 2024-11-05. */
export type UpstreamAddress =
  | {
      readonly kind: 'stdio';
      readonly command: string;
      readonly args: readonly string[];
      /** Laid over the few variables that are passed on (PATH, HOME, …). */
      readonly env: Readonly<Record<string, string>>;
      readonly cwd?: string;
    }
  | {
      readonly kind: 'http' | 'sse';
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
    };

/** What is set for one tool of an upstream, by the upstream's own name for it. */
export interface ToolRule {
  /** Policies that hold for this tool alone, inside those of the upstream. */
  readonly policy?: PolicySettings;
  /** Overrides the tool's own annotation: a call may be repeated. */
  readonly idempotent?: boolean;
  /** Overrides the tool's own annotation: a call may be repeated and its answer cached. */
  readonly readOnly?: boolean;
}

/** One upstream. */
export interface UpstreamConfig {
  readonly name: string;
  readonly address: UpstreamAddress;
  /**
   * Policies of the dependency. `timeout` is the idle timeout of an attempt, renewed by
   * progress; `deadline` the total; `breaker` counts failures of the transport alone.
   */
  readonly policy: PolicySettings;
  readonly tools: Readonly<Record<string, ToolRule>>;
  /** A breaker of its own for every tool, in which `isError` counts. False: none. */
  readonly toolBreaker: PolicySettings['breaker'] | false;
  /**
   * After this many identical calls of one client in a row that failed alike, the next is
   * answered here, with the advice not to repeat it. False: never.
   */
  readonly toolGuard: number | false;
  /** Milliseconds from the start of a connection to the end of `initialize`. */
  readonly connectTimeout: number;
  /** Milliseconds that listing what it offers may take. */
  readonly discoveryTimeout: number;
  /** One upstream session for all clients. Default false: one for each. */
  readonly shared: boolean;
  /** Backoff between restarts and reconnects, in milliseconds. It never gives up for good. */
  readonly restart: { readonly initialDelay: number; readonly maxDelay: number };
  /** Longest message of the upstream that is taken, in bytes. */
  readonly maxMessageBytes: number;
  /** Values that must never be shown: they came out of variables, or are credentials. */
  readonly secrets: readonly string[];
}

// ---------------------------------------------------------------------------------------------
// Links: stdio-link.ts, http-link.ts, sse-link.ts

/** Why a link is at its end. */
export interface LinkEnd {
  /**
   * `closed` by us; `exited` for a child; `lost` for a connection; `session` when the upstream
   * no longer knows the session.
   */
  readonly kind: 'closed' | 'exited' | 'lost' | 'session';
  /** For a person: "exited with code 1", "killed by SIGKILL". */
  readonly reason: string;
  /** What a child had to say last, on stderr; secrets masked. */
  readonly lastWords?: string;
}

/**
 * A message was not delivered, or its answer cannot come any more. `delivery` is `not-sent` only
 * when the upstream surely never saw the message; such a request may be sent again.
 */
export interface LinkFailure extends Error {
  readonly delivery: 'not-sent' | 'lost';
  /** Where the upstream answered with an HTTP status. */
  readonly status?: number;
  readonly headers?: Headers;
  /** The upstream no longer knows the session: it has to be initialised anew. */
  readonly sessionLost?: boolean;
}

/**
 * One connection to an upstream: carries messages and knows next to nothing of them. Used once:
 * after its end another one is made.
 */
export interface Link {
  /** `related` is the id of our request on whose stream the message came, where that is known. */
  onmessage?: ((message: JSONRPCMessage, related: RequestId | undefined) => void) | undefined;
  /** The answer to our request `id` cannot come any more, while the link lives on. */
  onlost?: ((id: RequestId, failure: LinkFailure) => void) | undefined;
  /** Called once. Everything that was asked and not answered is lost with it. */
  onend?: ((end: LinkEnd) => void) | undefined;
  /** Connects or starts the child. Rejects with a `LinkFailure`. */
  open(signal?: AbortSignal): Promise<void>;
  /**
   * Hands a message over. Resolves when it is on its way (written to the pipe; accepted by the
   * HTTP server), not when it is answered. Rejects with a `LinkFailure`.
   * The signal ends the delivery and, over HTTP, the stream of its answer.
   */
  send(message: JSONRPCMessage, signal?: AbortSignal): Promise<void>;
  /** Version that `initialize` agreed on; HTTP sends it along from then on, and opens its GET stream. */
  initialized(protocolVersion: string): void;
  /** Ends it in an orderly way: DELETE of the session; end of stdin, SIGTERM, SIGKILL of the whole process group. Idempotent. */
  close(): Promise<void>;
  /** For health and spans. */
  readonly facts: {
    readonly pid?: number;
    readonly address?: string;
    readonly port?: number;
    readonly sessionId?: string;
  };
}

// ---------------------------------------------------------------------------------------------
// Upstream sessions and their manager: peer.ts, upstream.ts, upstream-manager.ts

/**
 * `connecting` for the first time or again; `ready`; `degraded`: it works, and something is
 * wrong (its breaker is not closed, discovery failed, it restarted a moment ago); `down`: the last
 * try to connect failed or its end was noticed, and the next try waits.
 */
export type UpstreamState = 'connecting' | 'ready' | 'degraded' | 'down';

/** How an upstream is, for health checks and people. No secrets in it. */
export interface UpstreamHealth {
  readonly name: string;
  readonly state: UpstreamState;
  readonly kind: UpstreamAddress['kind'];
  /** Why it is not ready. */
  readonly reason?: string;
  readonly breaker?: Json;
  readonly restarts: number;
  readonly sessions: number;
  /** Seconds until the next try to connect. */
  readonly retryAfter?: number;
  readonly pids: readonly number[];
  readonly serverInfo?: Json;
}

/** The client for whom an upstream session is opened. */
export interface ClientFacts {
  readonly protocolVersion: string;
  /** As the client declared them; the upstream is told the same, no more and no less. */
  readonly capabilities: Json;
  readonly clientInfo: Json;
}

/** One request to an upstream. */
export interface UpstreamRequest {
  readonly method: string;
  /** As the client sent them; `_meta` gets our trace context and progress token in a copy. */
  readonly params?: Json | undefined;
  /** Aborted when the client cancels or has gone: the upstream is told. */
  readonly signal?: AbortSignal | undefined;
  /** Params of a progress notification, token left out. Upstreams are always asked for progress. */
  readonly onProgress?: ((params: Json) => void) | undefined;
  /** For `tools/call`: what the catalog knows of the tool, under the upstream's own name. */
  readonly tool?: { readonly name: string; readonly annotations?: Json | undefined } | undefined;
  /** Who calls, for cache keys and limits per principal. */
  readonly principal?: string | undefined;
}

/**
 * One session with an upstream, for one client or shared. Survives the end of its links: they are
 * replaced with backoff, and the session is initialised anew.
 */
export interface UpstreamSession {
  readonly upstream: string;
  /** Result of the last `initialize`, whole; undefined before the first. */
  readonly initializeResult: Json | undefined;
  /**
   * Resolves with the result of `initialize`, once. Rejects with a `ResilienceError` when the
   * connection failed within the connect timeout; trying goes on in the background.
   */
  ready(signal?: AbortSignal): Promise<Json>;
  /**
   * Makes a protected request. Resolves with its `result`, whole.
   *
   * @throws JsonRpcError for an error response of the upstream: code, message and data as it
   * sent them; ResilienceError for what our policies decided or what the connection did
   * (`OUTCOME_UNKNOWN` when it may have been executed and must not be repeated); the signal's
   * reason on abort
   */
  request(request: UpstreamRequest): Promise<Json>;
  /** Sends a notification; one that cannot be sent is dropped. */
  notify(method: string, params?: Json): void;
  /**
   * Answers what the upstream asks the client (sampling, elicitation, roots, ping). `related` is
   * the request during which it asks, where that is known.
   */
  onrequest?:
    | ((
        method: string,
        params: Json | undefined,
        info: { readonly signal: AbortSignal; readonly related: UpstreamRequest | undefined },
      ) => Promise<Json>)
    | undefined;
  /** Notifications of the upstream other than progress and cancelled. */
  onnotification?:
    | ((method: string, params: Json | undefined, related: UpstreamRequest | undefined) => void)
    | undefined;
  /** Initialised for the first time after a failure, or anew: what it offers may have changed. */
  onreconnected?: (() => void) | undefined;
  /** Ends it; its child is reaped, its HTTP session deleted. A shared one lives on. */
  close(): Promise<void>;
}

/** All upstreams of a gateway. */
export interface UpstreamManager {
  readonly configs: readonly UpstreamConfig[];
  /** Opens a session and begins to connect. */
  open(upstream: string, client: ClientFacts): UpstreamSession;
  health(): readonly UpstreamHealth[];
  getServerState(upstream: string): UpstreamState | undefined;
  /** Called at each change of state. Returns how to stop it. */
  onState(listener: (upstream: string, state: UpstreamState) => void): () => void;
  /**
   * Applies an edited configuration: what did not change is left alone, what changed is closed
   * before the new one serves (its sessions are opened anew by who holds them: `onChange`).
   */
  apply(configs: readonly UpstreamConfig[]): Promise<void>;
  /** Called with the names of upstreams that were added, changed or removed. */
  onChange(listener: (names: readonly string[]) => void): () => void;
  /** Ends all sessions, children and timers. */
  close(): Promise<void>;
}
