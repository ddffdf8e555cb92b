/**
 * @module
 * Makes a connection to an upstream: a link, a peer on it, and `initialize` done in time. And finds
 * out whether one that was out of reach can be used again.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type Attributes, type Context, context } from '@opentelemetry/api';
import { JsonRpcError, SUPPORTED_PROTOCOL_VERSIONS } from '../mcp/jsonrpc.ts';
import type { Clock } from '../resilience/clock.ts';
import { ResilienceError } from '../resilience/failure.ts';
import { orAborted } from '../resilience/or-aborted.ts';
import { ClientOperation, type UpstreamIdentity } from './client-operation.ts';
import { Peer, type PeerHandlers } from './peer.ts';
import type { ClientFacts, Json, Link, UpstreamConfig } from './types.ts';
import { Connection } from './upstream-connection.ts';
import {
  connectTimeoutError,
  endedError,
  invalidAnswerError,
  isSessionLost,
  refusesSession,
  upstreamError,
} from './upstream-failure.ts';
import { sendNotice } from './upstream-words.ts';

/** What connections to one upstream are made with. */
export interface ConnectionSettings {
  readonly config: UpstreamConfig;
  readonly identity: UpstreamIdentity;
  readonly clock: Clock;
  readonly createLink: (config: UpstreamConfig) => Link;
  /** Those of the injected fault because of which a connection is made. */
  readonly marks?: () => Attributes | undefined;
}

// A link lives longer than what made it: its events must not run in the async context (and with
// the deadline) of the request that happened to be there first.
const detached = AsyncLocalStorage.snapshot();

/** A try to connect that failed; `reaped` resolves when nothing of it is left. */
export interface FailedTry {
  readonly error: ResilienceError;
  readonly reaped: Promise<void>;
}

const versionOf = (config: UpstreamConfig, result: Json): string => {
  const { protocolVersion } = result;
  if (typeof protocolVersion !== 'string') {
    throw invalidAnswerError(config, 'it answered initialize without a "protocolVersion"');
  }
  if (!SUPPORTED_PROTOCOL_VERSIONS.includes(protocolVersion)) {
    const supported = SUPPORTED_PROTOCOL_VERSIONS.join(', ');
    const problem = `it speaks MCP version ${protocolVersion}, and we speak ${supported}`;
    throw invalidAnswerError(config, problem);
  }
  return protocolVersion;
};

/**
 * What a try failed with, for those who wait for the connection: whatever became of `initialize`,
 * their requests were not sent. An error response is told in our words.
 */
const asFailure = ({ config, clock }: ConnectionSettings, error: unknown): ResilienceError => {
  const { failure } =
    error instanceof JsonRpcError
      ? invalidAnswerError(config, `it refused to initialise: ${error.code} ${error.message}`)
      : upstreamError(config, error, () => clock.wallTime());
  return new ResilienceError({ ...failure, delivery: 'not_sent' });
};

/** A signal that aborts with the given one, or when the connect timeout is over. */
const timeLimit = ({ config, clock }: ConnectionSettings, signal: AbortSignal) => {
  const limit = new AbortController();
  const onAbort = () => limit.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  const { connectTimeout } = config;
  const timer = clock.setTimer(connectTimeout, () =>
    limit.abort(connectTimeoutError(config, connectTimeout)),
  );
  return {
    signal: limit.signal,
    end: () => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
    },
  };
};

/**
 * Makes a connection: opens a link and initialises it for `client`, within the connect timeout.
 *
 * @param handlers take what the upstream says from the first message on
 * @param parent of the span of `initialize`
 * @returns the connection, or what went wrong; never rejects
 */
export const connect = async <Origin>(
  settings: ConnectionSettings,
  client: ClientFacts,
  handlers: PeerHandlers<Origin>,
  signal: AbortSignal,
  parent: Context,
): Promise<Connection<Origin> | FailedTry> => {
  const { config, clock, identity, marks } = settings;
  const link = detached(() => settings.createLink(config));
  const peer = new Peer<Origin>(link, (end) => endedError(config, end));
  peer.onrequest = handlers.onrequest;
  peer.onnotification = handlers.onnotification;
  peer.onnotify = (method, send) => sendNotice(identity, method, send);
  const limit = timeLimit(settings, signal);
  const asked = { method: 'initialize', params: { ...client } };
  const operation = new ClientOperation(asked, identity, {}, undefined, parent, marks?.());
  const early = Promise.withResolvers<never>();
  peer.onend = (end) => early.reject(endedError(config, end));
  early.promise.catch(() => {});
  try {
    const opened = detached(() => link.open(limit.signal));
    await Promise.race([orAborted(opened, limit.signal), early.promise]);
    const result = await context.with(operation.context, () =>
      peer.request({
        ...asked,
        signal: limit.signal,
        onSend: (id) => operation.sent(id, undefined),
      }),
    );
    const version = versionOf(config, result);
    operation.negotiated(version);
    link.initialized(version);
    operation.answered(result);
    // What a link begins with it (the stream of an HTTP server) outlives the client's trace.
    detached(() => peer.notify('notifications/initialized'));
    const made = { peer, initializeResult: result, protocolVersion: version, since: clock.now() };
    return new Connection<Origin>(link, made);
  } catch (caught) {
    const error = asFailure(settings, caught);
    if (signal.aborted) operation.cancelled();
    else operation.failed(caught instanceof JsonRpcError ? caught : error);
    return { error, reaped: link.close() };
  } finally {
    limit.end();
  }
};

/**
 * Asks an upstream that could not be reached whether it knows the session still.
 *
 * @returns the connection, to be used again; why it still cannot be; undefined when the session is
 * gone, and a new connection has to be made
 */
export const resume = async <Origin>(
  settings: ConnectionSettings,
  suspended: Connection<Origin>,
  signal: AbortSignal,
): Promise<Connection<Origin> | FailedTry | undefined> => {
  const { peer, facts } = suspended;
  const limit = timeLimit(settings, signal);
  try {
    await peer.request({ method: 'ping', signal: limit.signal });
  } catch (error) {
    if (peer.end || isSessionLost(error, facts.sessionId)) return undefined;
    // One that answers is there, even if it knows no ping.
    if (!(error instanceof JsonRpcError)) {
      return { error: asFailure(settings, error), reaped: Promise.resolve() };
    }
    if (refusesSession(error)) return undefined;
  } finally {
    limit.end();
  }
  return peer.end ? undefined : suspended.renewed();
};
