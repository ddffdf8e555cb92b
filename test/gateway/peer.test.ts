import { context, propagation, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { afterEach, describe, expect, test } from 'vitest';
import { type LinkError, notOpen, unanswered } from '../../src/gateway/link-failure.ts';
import { Peer } from '../../src/gateway/peer.ts';
import type { Json, Link } from '../../src/gateway/types.ts';
import { type JSONRPCMessage, JsonRpcError, type RequestId } from '../../src/mcp/jsonrpc.ts';
import { createFailure, ResilienceError } from '../../src/resilience/failure.ts';
import { flush } from '../fixtures/manual-clock.ts';
import { startRecording } from '../fixtures/telemetry.ts';
import { verifies } from '../fixtures/verifies.ts';

/** A link whose other end is the test. */
const wire = () => {
  const sent: Json[] = [];
  let refuse: LinkError | undefined;
  let hold: Promise<void> | undefined;
  const link: Link = {
    open: async () => {},
    send: async (message) => {
      if (refuse) throw refuse;
      sent.push(message as unknown as Json);
      await hold;
    },
    initialized: () => {},
    close: async () => {},
    facts: {},
  };
  const peer = new Peer<string>(link, ({ reason }) => new Error(`ended: ${reason}`));
  const say = (message: Json, related?: RequestId) =>
    link.onmessage?.({ jsonrpc: '2.0', ...message } as unknown as JSONRPCMessage, related);
  return {
    link,
    peer,
    sent,
    say,
    answer: (id: unknown, result: Json = {}) => say({ id, result }),
    methods: () => sent.map(({ method }) => method),
    refuse: (error: LinkError) => {
      refuse = error;
    },
    hold: (until: Promise<void>) => {
      hold = until;
    },
  };
};

const metaOf = (message: Json | undefined): Json =>
  ((message?.params as Json | undefined)?._meta ?? {}) as Json;

describe('Peer', () => {
  verifies('peer.ids', async () => {
    const { peer, sent, answer } = wire();
    // Two clients with the same ids of their own, and the same tokens.
    const asked = ['a', 'b'].map((who) =>
      peer.request({ method: 'tools/call', params: { who, _meta: { progressToken: 7, x: who } } }),
    );
    const [first, second] = sent;
    expect(first?.id).not.toBe(second?.id);
    expect(metaOf(first)).toEqual({ progressToken: first?.id, x: 'a' });
    expect(metaOf(second)).toEqual({ progressToken: second?.id, x: 'b' });
    answer(second?.id, { for: 'b', 'x-vendor': { deep: [1] } });
    answer(first?.id, { for: 'a' });
    expect(await Promise.all(asked)).toEqual([
      { for: 'a' },
      { for: 'b', 'x-vendor': { deep: [1] } },
    ]);
    expect(peer.pending).toBe(0);
  });

  test('an error response keeps code, message and data', async () => {
    const { peer, say, sent } = wire();
    const asked = peer.request({ method: 'tools/call' });
    say({ id: sent[0]?.id, error: { code: -32042, message: 'open it', data: { url: 'x' } } });
    const error = await asked.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(JsonRpcError);
    expect(error).toMatchObject({ code: -32042, message: 'open it', data: { url: 'x' } });
  });

  verifies('peer.cancel', async () => {
    const { peer, sent, answer, methods } = wire();
    const controller = new AbortController();
    const { signal } = controller;
    const kept = peer.request({ method: 'tools/call', signal });
    const done = peer.request({ method: 'tools/call', signal });
    answer(sent[1]?.id, { ok: true });
    await done;
    controller.abort(new Error('the user pressed stop'));
    await expect(kept).rejects.toThrow('the user pressed stop');
    await flush();
    expect(sent.slice(2)).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId: sent[0]?.id, reason: 'the user pressed stop' },
      },
    ]);
    // Not even sent when it was over before.
    await expect(peer.request({ method: 'ping', signal })).rejects.toThrow('pressed stop');
    const second = new AbortController();
    const initialize = peer.request({ method: 'initialize', signal: second.signal });
    second.abort('x'.repeat(10_000));
    await expect(initialize).rejects.toMatch(/^x+$/);
    const third = new AbortController();
    const long = peer.request({ method: 'tools/call', signal: third.signal });
    third.abort('x'.repeat(10_000));
    await expect(long).rejects.toMatch(/^x+$/);
    expect(methods().slice(3)).toEqual(['initialize', 'tools/call', 'notifications/cancelled']);
    expect(sent.at(-1)?.params).toMatchObject({ reason: 'x'.repeat(200) });
  });

  verifies('peer.late', async () => {
    const { peer, sent, say, answer } = wire();
    const controller = new AbortController();
    const gone = peer.request({ method: 'tools/call', signal: controller.signal });
    controller.abort('gone');
    await gone.catch(() => {});
    answer(sent[0]?.id);
    answer(99);
    answer('no number');
    say({ method: 'notifications/progress', params: { progressToken: sent[0]?.id, progress: 1 } });
    expect(peer.ignored).toBe(4);
    const steps: Json[] = [];
    const asked = peer.request({
      method: 'tools/call',
      onProgress: (step) => void steps.push(step),
    });
    const id = sent.at(-1)?.id;
    say({ method: 'notifications/progress', params: { progressToken: id, progress: 1, 'x-v': 1 } });
    // Some servers give ids back as text.
    say({ method: 'notifications/progress', params: { progressToken: `${id}`, progress: 2 } });
    answer(`${id}`, { ok: true });
    expect(await asked).toEqual({ ok: true });
    say({ method: 'notifications/progress', params: { progressToken: id, progress: 3 } });
    answer(id);
    expect(steps).toEqual([{ progress: 1, 'x-v': 1 }, { progress: 2 }]);
    expect(peer.ignored).toBe(6);
  });

  verifies('peer.questions', async () => {
    const { peer, sent, say, answer } = wire();
    say({ id: 'p', method: 'ping' });
    say({ id: 'n', method: 'sampling/createMessage', params: {} });
    await flush();
    expect(sent.splice(0)).toEqual([
      { jsonrpc: '2.0', id: 'p', result: {} },
      { jsonrpc: '2.0', id: 'n', error: { code: -32601, message: expect.any(String) } },
    ]);
    const seen: unknown[] = [];
    let release = (_: Json): void => {};
    let signalOf: AbortSignal | undefined;
    peer.onrequest = (method, params, { signal, origin }) => {
      seen.push([method, params, origin]);
      signalOf = signal;
      return new Promise((resolve) => {
        release = resolve;
      });
    };
    void peer.request({ method: 'tools/call', origin: 'a' });
    const [one] = sent;
    // The only request that runs must be the one that is meant.
    say({ id: 1, method: 'elicitation/create', params: { message: 'name?' } });
    // Asked again with the same id: its answer would be taken for that of the first.
    say({ id: 1, method: 'elicitation/create' });
    expect(peer.ignored).toBe(1);
    release({ action: 'accept' });
    await flush();
    expect(sent.at(-1)).toEqual({ jsonrpc: '2.0', id: 1, result: { action: 'accept' } });
    void peer.request({ method: 'tools/call', origin: 'b' });
    const two = sent.at(-1);
    say({ id: 2, method: 'roots/list' });
    say({ id: 3, method: 'roots/list' }, two?.id as number);
    expect(seen).toEqual([
      ['elicitation/create', { message: 'name?' }, 'a'],
      ['roots/list', undefined, undefined],
      ['roots/list', undefined, 'b'],
    ]);
    // Not wanted any more: no answer, and whoever was asked is told.
    const before = sent.length;
    say({ method: 'notifications/cancelled', params: { requestId: 3 } });
    expect(signalOf?.aborted).toBe(true);
    release({});
    await flush();
    expect(sent.length).toBe(before);
    answer(one?.id);
    answer(two?.id);
  });

  test('what a question fails with reaches the upstream', async () => {
    const { peer, sent, say } = wire();
    const errors: unknown[] = [
      new JsonRpcError(-1, 'User rejected', { why: 'no' }),
      new ResilienceError(createFailure('CANCELLED', { message: 'stopped' })),
    ];
    peer.onrequest = async () => {
      throw errors.shift();
    };
    say({ id: 1, method: 'sampling/createMessage' });
    say({ id: 2, method: 'sampling/createMessage' });
    await flush();
    expect(sent).toEqual([
      { jsonrpc: '2.0', id: 1, error: { code: -1, message: 'User rejected', data: { why: 'no' } } },
      {
        jsonrpc: '2.0',
        id: 2,
        error: {
          code: -32603,
          message: 'stopped',
          data: { 'mcp-resilience/failure': expect.objectContaining({ code: 'CANCELLED' }) },
        },
      },
    ]);
  });

  test('notifications are handed on with the request that they belong to', async () => {
    const { peer, sent, say, answer } = wire();
    const seen: unknown[] = [];
    peer.onnotification = (...all) => void seen.push(all);
    const asked = peer.request({ method: 'tools/call', origin: 'a' });
    say({ method: 'notifications/message', params: { data: 1 } }, sent[0]?.id as number);
    answer(sent[0]?.id);
    await asked;
    say({ method: 'notifications/tools/list_changed' });
    say({ method: 'notifications/x-vendor', params: { y: 1 } }, sent[0]?.id as number);
    expect(seen).toEqual([
      ['notifications/message', { data: 1 }, 'a'],
      ['notifications/tools/list_changed', undefined, undefined],
      ['notifications/x-vendor', { y: 1 }, undefined],
    ]);
  });

  test('what cannot be sent fails as the link says, and one lost answer loses nothing else', async () => {
    const { peer, link, sent, answer, refuse } = wire();
    const lost = peer.request({ method: 'tools/call' });
    const other = peer.request({ method: 'tools/call' });
    const failure = unanswered();
    link.onlost?.(sent[0]?.id as number, failure);
    await expect(lost).rejects.toBe(failure);
    answer(sent[1]?.id, { ok: true });
    expect(await other).toEqual({ ok: true });
    const refusal = notOpen();
    refuse(refusal);
    await expect(peer.request({ method: 'tools/call' })).rejects.toBe(refusal);
    // A notification that cannot be sent is nobody's error.
    peer.notify('notifications/roots/list_changed');
    await flush();
    await peer.idle();
    expect(peer.pending).toBe(0);
  });

  test('the end of the link ends everything, but lets it say what was never sent', async () => {
    const { peer, link, sent, say, hold } = wire();
    const ends: unknown[] = [];
    peer.onend = (end) => void ends.push(end);
    let asked: AbortSignal | undefined;
    peer.onrequest = (_method, _params, { signal }) => {
      asked = signal;
      return new Promise(() => {});
    };
    say({ id: 1, method: 'roots/list' });
    const delivered = peer.request({ method: 'tools/call' });
    await flush();
    const refused = Promise.withResolvers<void>();
    hold(refused.promise);
    const underWay = peer.request({ method: 'tools/call' });
    let idle = false;
    void peer.idle().then(() => {
      idle = true;
    });
    link.onend?.({ kind: 'exited', reason: 'exited with code 1' });
    link.onend?.({ kind: 'closed', reason: 'again' });
    const refusal = notOpen();
    refused.reject(refusal);
    await expect(delivered).rejects.toThrow('ended: exited with code 1');
    await expect(underWay).rejects.toBe(refusal);
    expect(asked?.aborted).toBe(true);
    expect(ends).toEqual([{ kind: 'exited', reason: 'exited with code 1' }]);
    await flush();
    expect(idle).toBe(true);
    expect(peer.end).toEqual({ kind: 'exited', reason: 'exited with code 1' });
    await expect(peer.request({ method: 'ping' })).rejects.toThrow('ended');
    const before = sent.length;
    peer.notify('notifications/roots/list_changed');
    expect(sent.length).toBe(before);
  });

  test('what nobody says anything of any more after the end is lost', async () => {
    const { peer, link, hold } = wire();
    hold(new Promise(() => {}));
    const underWay = peer.request({ method: 'tools/call' });
    link.onend?.({ kind: 'lost', reason: 'cut' });
    await expect(underWay).rejects.toThrow('ended: cut');
  });
});

describe('_meta', () => {
  let telemetry: ReturnType<typeof startRecording> | undefined;
  afterEach(() => {
    telemetry?.stop();
    telemetry = undefined;
  });

  verifies('peer.meta', () => {
    telemetry = startRecording();
    const { peer, sent } = wire();
    const client = {
      traceparent: '00-11111111111111111111111111111111-1111111111111111-01',
      tracestate: 'vendor=client',
      baggage: 'user=alice',
      progressToken: 'mine',
      'vendor.example/key': { nested: [null, 'ü'] },
    };
    const params = Object.freeze({ name: 'x', _meta: Object.freeze(client) });
    const span = trace.getTracer('test').startSpan('parent', {}, ROOT_CONTEXT);
    const { traceId, spanId } = span.spanContext();
    const inside = trace.setSpan(
      propagation.setBaggage(ROOT_CONTEXT, propagation.createBaggage({ secret: { value: '1' } })),
      span,
    );
    void context.with(inside, () => peer.request({ method: 'tools/call', params }));
    expect(metaOf(sent[0])).toEqual({
      traceparent: `00-${traceId}-${spanId}-01`,
      progressToken: sent[0]?.id,
      'vendor.example/key': { nested: [null, 'ü'] },
    });
    context.with(inside, () => peer.notify('notifications/roots/list_changed'));
    expect(metaOf(sent[1])).toEqual({ traceparent: `00-${traceId}-${spanId}-01` });
    span.end();
  });

  test('without a trace of ours that of the client goes on, and nothing is added', () => {
    const { peer, sent } = wire();
    const meta = { traceparent: '00-1', tracestate: 'a=b', baggage: 'c=d' };
    void peer.request({ method: 'tools/call', params: { _meta: meta } });
    expect(metaOf(sent[0])).toEqual({ traceparent: '00-1', tracestate: 'a=b', progressToken: 1 });
    void peer.request({ method: 'initialize', params: { a: 1 } });
    peer.notify('notifications/x', { b: 1 });
    peer.notify('notifications/y', { b: 1, _meta: { baggage: 'c=d' } });
    peer.notify('notifications/z');
    expect(sent.slice(1)).toEqual([
      { jsonrpc: '2.0', id: 2, method: 'initialize', params: { a: 1 } },
      { jsonrpc: '2.0', method: 'notifications/x', params: { b: 1 } },
      { jsonrpc: '2.0', method: 'notifications/y', params: { b: 1 } },
      { jsonrpc: '2.0', method: 'notifications/z' },
    ]);
    // A name that breaks naive copies.
    const odd = JSON.parse('{"__proto__": {"x": 1}, "_meta": {"__proto__": 2}}') as Json;
    void peer.request({ method: 'tools/call', params: odd });
    expect(JSON.stringify(sent.at(-1)?.params)).toBe(
      '{"__proto__":{"x":1},"_meta":{"__proto__":2,"progressToken":3}}',
    );
  });
});
