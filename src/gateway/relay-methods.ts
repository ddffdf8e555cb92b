/**
 * @module
 * What becomes of each request of a client: which upstream it is for, and how its names read
 * there. Whatever nobody here knows goes through as it came, where there is one upstream.
 */
import { CODE, JsonRpcError, type RequestId } from '../mcp/jsonrpc.ts';
import type { ToolContext } from '../mcp/tool.ts';
import { orAborted } from '../resilience/or-aborted.ts';
import type { Catalog, NamedKind, Source, Target } from './catalog.ts';
import { declares, isJson, LISTS, type ListKind } from './catalog-kinds.ts';
import type { RelayContext } from './relay-context.ts';
import { refusal, toolFailure } from './relay-failure.ts';
import type { Json, UpstreamRequest } from './types.ts';

/** One request of a client, as it came. */
export interface Call {
  readonly id: RequestId;
  readonly method: string;
  readonly params: Json | undefined;
  readonly signal: AbortSignal;
}

/** What the methods need of their session. */
export interface MethodSession {
  readonly context: RelayContext;
  readonly catalog: Catalog;
  readonly sources: () => readonly Source[];
  /** URIs that the client has subscribed to, and with whom. */
  readonly subscriptions: Map<string, Source>;
  /** Level that the client wants to be logged; undefined before it says so. */
  logLevel: Json | undefined;
  /** Id of the client's session, where there is one. */
  readonly sessionId: () => string | undefined;
  /** What tools of the gateway's own are told of a call. */
  readonly contextOf: (call: Call) => ToolContext;
  /** Asks an upstream for the client: relays progress, and knows for whom it is. */
  request(
    source: Source,
    call: Call,
    changed?: Pick<UpstreamRequest, 'params' | 'tool'>,
  ): Promise<Json>;
}

/** Lists by their method. */
const KINDS = new Map<string, ListKind>(
  Object.entries(LISTS).map(([kind, { method }]) => [method, kind as ListKind]),
);

/** A name that nobody has, as far as one could have been that long. */
const quoted = (name: unknown): string => {
  const text = typeof name === 'string' ? name : (JSON.stringify(name) ?? 'nothing');
  return `"${text.length > 128 ? `${text.slice(0, 128)}…` : text}"`;
};

const list = async (session: MethodSession, kind: ListKind, call: Call): Promise<Json> => {
  const { catalog, context } = session;
  if (call.params?.cursor !== undefined) {
    const [only] = session.sources();
    // Not one of ours: we give none.
    if (context.transparent && only) return session.request(only, call);
    throw refusal(
      CODE.invalidParams,
      'INVALID_INPUT',
      `Invalid cursor: everything is on the first page; call ${call.method} without a cursor`,
    );
  }
  const { result, missing } = await catalog.list(kind);
  for (const { source, error } of missing) context.onMissing(source.name, kind, error);
  return result;
};

const lookUp = async (session: MethodSession, kind: NamedKind, name: unknown): Promise<Target> => {
  const target = typeof name === 'string' ? await session.catalog.named(kind, name) : undefined;
  if (target) return target;
  const what = kind === 'tools' ? 'tool' : 'prompt';
  const others = typeof name === 'string' ? session.catalog.similar(kind, name) : [];
  const hint =
    others.length > 0
      ? `several servers have it; use ${others.join(' or ')}`
      : `${kind}/list tells the names that exist`;
  throw refusal(CODE.invalidParams, 'INVALID_INPUT', `Unknown ${what}: ${quoted(name)}; ${hint}`);
};

/** Answers a request for something of the gateway's own. */
const answerOwn = async (session: MethodSession, call: Call, changed: Json): Promise<Json> => {
  const { own } = session.context;
  if (!own) throw new TypeError('the gateway offers nothing of its own');
  const params = { ...call.params, ...changed };
  // Whoever names a tool need not have looked before; what cannot be listed is not known then.
  if (own.needsTools(params)) {
    await orAborted(session.catalog.list('tools'), call.signal).catch(() => {});
  }
  return own.answer(call.method, params, session.contextOf(call));
};

const callTool = async (session: MethodSession, call: Call): Promise<Json> => {
  const { context, catalog } = session;
  const name = call.params?.name;
  const own = catalog.own.named('tools', name);
  if (own !== undefined) return answerOwn(session, call, { name: own });
  if (context.transparent && typeof name !== 'string') return forward(session, call);
  const target = await lookUp(session, 'tools', name);
  const annotations = target.item?.annotations;
  const relay = async (): Promise<Json> => {
    try {
      return await session.request(target.source, call, {
        params: { ...call.params, name: target.name },
        tool: { name: target.name, ...(isJson(annotations) && { annotations }) },
      });
    } catch (error) {
      if (call.signal.aborted) throw error;
      return toolFailure(error);
    }
  };
  if (!context.chaos) return relay();
  const { signal } = call;
  const facts = { upstream: target.source.name, session: session.sessionId(), signal };
  return context.chaos.call({ tool: String(name), ...facts }, relay);
};

const getPrompt = async (session: MethodSession, call: Call): Promise<Json> => {
  const own = session.catalog.own.named('prompts', call.params?.name);
  if (own !== undefined) return answerOwn(session, call, { name: own });
  if (session.context.transparent) return forward(session, call);
  const { source, name } = await lookUp(session, 'prompts', call.params?.name);
  return session.request(source, call, { params: { ...call.params, name } });
};

/** "There is no such resource", as servers of different ages say it. */
const saysNotFound = (error: unknown): boolean =>
  error instanceof JsonRpcError &&
  [-32_002, CODE.invalidParams, CODE.methodNotFound].includes(error.code);

/** Asks one after the other until one has it. Only for what changes nothing. */
const askInTurn = async (
  session: MethodSession,
  call: Call,
  candidates: readonly Source[],
): Promise<{ source: Source; result: Json }> => {
  let refused: unknown;
  for (const source of candidates) {
    try {
      return { source, result: await session.request(source, call) };
    } catch (error) {
      if (call.signal.aborted || (!saysNotFound(error) && candidates.length === 1)) throw error;
      // What the likeliest one said tells most.
      refused ??= error;
    }
  }
  throw (
    refused ?? refusal(CODE.methodNotFound, 'METHOD_NOT_FOUND', `Method not found: ${call.method}`)
  );
};

const offering = (sources: readonly Source[], capability: string): Source[] =>
  sources.filter(({ session }) => declares(session.initializeResult, capability));

const resource = async (session: MethodSession, call: Call): Promise<Json> => {
  const { method, params } = call;
  const uri = params?.uri;
  if (typeof uri !== 'string') {
    if (session.context.transparent) return forward(session, call);
    throw refusal(CODE.invalidParams, 'INVALID_INPUT', 'params.uri must be the URI of a resource');
  }
  if (method === 'resources/read' && session.catalog.isOwnResource(uri)) {
    return answerOwn(session, call, { uri });
  }
  const subscribed = session.subscriptions.get(uri);
  const candidates =
    method === 'resources/unsubscribe' && subscribed
      ? [subscribed]
      : await session.catalog.resource(uri);
  const able = session.context.transparent ? candidates : offering(candidates, 'resources');
  const { source, result } = await askInTurn(session, call, able);
  if (method === 'resources/subscribe') session.subscriptions.set(uri, source);
  if (method === 'resources/unsubscribe') session.subscriptions.delete(uri);
  return result;
};

const complete = async (session: MethodSession, call: Call): Promise<Json> => {
  if (session.context.transparent) return forward(session, call);
  const ref = call.params?.ref;
  if (isJson(ref) && ref.type === 'ref/prompt') {
    const { source, name } = await lookUp(session, 'prompts', ref.name);
    return session.request(source, call, { params: { ...call.params, ref: { ...ref, name } } });
  }
  if (isJson(ref) && ref.type === 'ref/resource' && typeof ref.uri === 'string') {
    const owner = await session.catalog.template(ref.uri);
    const candidates = owner ? [owner] : await session.catalog.resource(ref.uri);
    return (await askInTurn(session, call, offering(candidates, 'completions'))).result;
  }
  throw refusal(
    CODE.invalidParams,
    'INVALID_INPUT',
    'params.ref must be a ref/prompt with a name or a ref/resource with a uri',
  );
};

/** Everybody who logs is told; it failed if it failed with all of them. */
const setLevel = async (session: MethodSession, call: Call): Promise<Json> => {
  session.logLevel = call.params;
  if (session.context.transparent) return forward(session, call);
  const able = offering(session.sources(), 'logging');
  const answers = await Promise.allSettled(able.map((source) => session.request(source, call)));
  const good = answers.find((answer) => answer.status === 'fulfilled');
  const [bad] = answers;
  if (!good && bad?.status === 'rejected') throw bad.reason;
  return good?.value ?? {};
};

/** Whatever nobody here knows, where it is certain whom it is for. */
const forward = (session: MethodSession, call: Call): Promise<Json> => {
  const [only, ...others] = session.sources();
  if (!only || others.length > 0) {
    throw refusal(
      CODE.methodNotFound,
      'METHOD_NOT_FOUND',
      `Method not found: ${quoted(call.method)}`,
    );
  }
  return session.request(only, call);
};

const METHODS: Readonly<Record<string, (session: MethodSession, call: Call) => Promise<Json>>> = {
  'tools/call': callTool,
  'prompts/get': getPrompt,
  'resources/read': resource,
  'resources/subscribe': resource,
  'resources/unsubscribe': resource,
  'completion/complete': complete,
  'logging/setLevel': setLevel,
};

/**
 * Answers a request, `initialize` and `ping` aside.
 *
 * @throws JsonRpcError as the upstream sent it; what the policies or the connection failed with;
 * the signal's reason
 */
export const answer = async (session: MethodSession, call: Call): Promise<Json> => {
  const kind = KINDS.get(call.method);
  if (kind) return list(session, kind, call);
  const method = Object.hasOwn(METHODS, call.method) ? METHODS[call.method] : undefined;
  return (method ?? forward)(session, call);
};
