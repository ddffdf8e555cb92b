/**
 * @module
 * What a handler is told of its call, made out of what the SDK tells us.
 */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  type ElicitRequestFormParams,
  ElicitResultSchema,
  type ServerNotification,
  type ServerRequest,
} from '@modelcontextprotocol/sdk/types.js';
import { principalOf } from './principal.ts';
import type { ToolContext } from './tool.ts';

/** What the SDK tells of a request. */
export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** Milliseconds that a person has for an answer: longer than the SDK's limit for machines. */
const TIME_TO_ANSWER = 5 * 60_000;

/** Progress of one call: only if the client asked, only while it waits, only forward (2025-11-25, basic/utilities/progress). */
const progressOf = (extra: Extra, isRunning: () => boolean): ToolContext['progress'] => {
  const progressToken = extra._meta?.progressToken;
  if (progressToken === undefined) return () => {};
  let last = Number.NEGATIVE_INFINITY;
  return (progress, total, message) => {
    if (!isRunning() || !(progress > last)) return;
    last = progress;
    const params = {
      progressToken,
      progress,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message }),
    };
    // Progress is a courtesy: a client that has gone is noticed elsewhere.
    extra.sendNotification({ method: 'notifications/progress', params }).catch(() => {});
  };
};

const elicitOf = (server: Server, extra: Extra): ToolContext['elicit'] => {
  const can = server.getClientCapabilities()?.elicitation;
  // One that names no mode means forms: there were no others before 2025-11-25.
  if (can === undefined || (can.url !== undefined && can.form === undefined)) return undefined;
  return async (message, schema) => {
    const requestedSchema = schema as ElicitRequestFormParams['requestedSchema'];
    const { action, content } = await extra.sendRequest(
      { method: 'elicitation/create', params: { message, requestedSchema } },
      ElicitResultSchema,
      { signal: extra.signal, timeout: TIME_TO_ANSWER },
    );
    return { action, ...(content && { content }) };
  };
};

/** The context of one call. `isRunning` is false once the handler has ended. */
export const contextFor = (
  server: Server,
  extra: Extra,
  sessionEnded: AbortSignal,
  isRunning: () => boolean,
): ToolContext => {
  const principal = principalOf(extra.authInfo);
  const client = server.getClientVersion();
  const elicit = elicitOf(server, extra);
  return {
    signal: extra.signal,
    ...(extra.sessionId !== undefined && { sessionId: extra.sessionId, sessionEnded }),
    ...(client && { client: { name: client.name, version: client.version } }),
    ...(principal !== undefined && { principal }),
    ...(extra._meta && { meta: extra._meta }),
    ...(elicit && { elicit }),
    progress: progressOf(extra, isRunning),
  };
};
