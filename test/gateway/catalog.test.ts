import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Catalog, type Source } from '../../src/gateway/catalog.ts';
import { createLists, ListOverdueError, UpstreamList } from '../../src/gateway/catalog-list.ts';
import { closeness, whoHas } from '../../src/gateway/catalog-uris.ts';
import type { Json, UpstreamRequest, UpstreamSession } from '../../src/gateway/types.ts';
import { CODE, JsonRpcError } from '../../src/mcp/jsonrpc.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';
import { verifies } from '../fixtures/verifies.ts';

const DECLARED: Json = {
  capabilities: {
    tools: { listChanged: true },
    resources: { listChanged: true },
    prompts: { listChanged: true },
  },
};

/** A session whose answers the test gives. */
const sessionOf = (
  answer: (request: UpstreamRequest) => Promise<Json> | Json,
  initializeResult: Json = DECLARED,
) => {
  const asked: UpstreamRequest[] = [];
  const session: UpstreamSession = {
    upstream: 'u',
    initializeResult,
    ready: async () => initializeResult,
    request: async (request) => {
      asked.push(request);
      return answer(request);
    },
    notify: () => {},
    close: async () => {},
  };
  return { session, asked };
};

const OPTIONS = { discoveryTimeout: 1_000 };
const named = (...names: string[]): Json => ({ tools: names.map((name) => ({ name })) });

describe('a list of an upstream', () => {
  test('follows the pages, and keeps what else the first one says', async () => {
    const pages: Record<string, Json> = {
      '': { tools: [{ name: 'a' }], nextCursor: 'x', _meta: { m: 1 }, 'x-vendor': true },
      x: { tools: [{ name: 'b' }], nextCursor: '', _meta: { m: 2 } },
      // An empty cursor is one too.
    };
    const { session, asked } = sessionOf(({ params }) => {
      const cursor = String(params?.cursor ?? '');
      return asked.length > 2 ? { tools: [{ name: 'c' }] } : (pages[cursor] ?? {});
    });
    const list = new UpstreamList('tools', session, OPTIONS);
    expect(await list.get()).toEqual({
      items: [{ name: 'a' }, { name: 'b' }, { name: 'c' }],
      rest: { _meta: { m: 1 }, 'x-vendor': true },
    });
    expect(asked.map(({ params }) => params?.cursor)).toEqual([undefined, 'x', '']);
  });

  test('ends with a cursor that leads in a circle, and with pages without end', async () => {
    const circle = sessionOf(({ params }) => ({
      tools: [{ name: String(params?.cursor ?? 'first') }],
      nextCursor: params?.cursor === 'b' ? 'a' : params?.cursor === 'a' ? 'b' : 'a',
    }));
    const { items } = await new UpstreamList('tools', circle.session, OPTIONS).get();
    expect(items).toEqual([{ name: 'first' }, { name: 'a' }, { name: 'b' }]);

    const endless = sessionOf(({ params }) => ({ nextCursor: `${params?.cursor ?? ''}x` }));
    expect(await new UpstreamList('tools', endless.session, OPTIONS).get()).toEqual({
      items: [],
      rest: {},
    });
    expect(endless.asked).toHaveLength(1_000);
  });

  verifies('catalog.kept', async () => {
    const { session, asked } = sessionOf(() => named('a'));
    const list = new UpstreamList('tools', session, OPTIONS);
    // Asked for once, for all who wait and for all who come later.
    expect(await Promise.all([list.get(), list.get()])).toEqual([list.known, list.known]);
    await list.get();
    expect(asked).toHaveLength(1);
    list.invalidate();
    expect(list.known?.items).toEqual([{ name: 'a' }]);
    await list.get();
    expect(asked).toHaveLength(2);

    // A server that never tells of changes is asked each time, as its clients would.
    const silent = sessionOf(() => named('a'), { capabilities: { tools: {} } });
    const unkept = new UpstreamList('tools', silent.session, OPTIONS);
    await unkept.get();
    await unkept.get();
    expect(silent.asked).toHaveLength(2);
  });

  test('that changes while it is read is read again for whoever asks after that', async () => {
    const answers: ((result: Json) => void)[] = [];
    const { session } = sessionOf(() => new Promise<Json>((resolve) => answers.push(resolve)));
    const list = new UpstreamList('tools', session, OPTIONS);
    const before = list.get();
    await flush();
    list.invalidate();
    const after = list.get();
    await flush();
    answers[1]?.(named('new'));
    expect((await after).items).toEqual([{ name: 'new' }]);
    answers[0]?.(named('old'));
    expect((await before).items).toEqual([{ name: 'old' }]);
    // What came last is not what was asked for last.
    expect((await list.get()).items).toEqual([{ name: 'new' }]);
  });

  test('of a capability that nobody declared is empty, and nobody is asked', async () => {
    const { session, asked } = sessionOf(() => named('a'), { capabilities: {} });
    expect((await new UpstreamList('tools', session, OPTIONS).get()).items).toEqual([]);
    expect(asked).toEqual([]);
    const verbatim = new UpstreamList('tools', session, { ...OPTIONS, verbatim: true });
    expect((await verbatim.get()).items).toEqual([{ name: 'a' }]);
  });

  test('of templates is empty where the server knows no templates', async () => {
    const unknown = sessionOf(() => {
      throw new JsonRpcError(CODE.methodNotFound, 'Method not found');
    });
    const templates = new UpstreamList('templates', unknown.session, OPTIONS);
    expect((await templates.get()).items).toEqual([]);
    await expect(new UpstreamList('tools', unknown.session, OPTIONS).get()).rejects.toThrow(
      'Method not found',
    );
  });

  verifies('catalog.overdue', async () => {
    const clock = new ManualClock();
    const answers: ((result: Json) => void)[] = [];
    const { session } = sessionOf(() => new Promise<Json>((resolve) => answers.push(resolve)));
    let late = 0;
    const list = new UpstreamList('tools', session, {
      discoveryTimeout: 10_000,
      clock,
      onLate: () => {
        late += 1;
      },
    });
    const outcomeOf = async (ms: number) => {
      const outcome = list.get().then(
        ({ items }) => items,
        (error: unknown) => error,
      );
      await clock.advance(ms);
      return outcome;
    };
    expect(await outcomeOf(10_000)).toBeInstanceOf(ListOverdueError);
    // It is still asked for, by the same request, and is hardly waited for again.
    expect(await outcomeOf(500)).toBeInstanceOf(ListOverdueError);
    expect([answers.length, late]).toEqual([1, 0]);
    answers[0]?.(named('a'));
    await flush();
    expect(late).toBe(1);
    expect(await outcomeOf(0)).toEqual([{ name: 'a' }]);

    // Once known, an old list is better than one that comes and goes.
    list.invalidate();
    expect(await outcomeOf(500)).toEqual([{ name: 'a' }]);
    answers[1]?.(named('a'));
    await flush();
    expect(late).toBe(1);
    list.invalidate();
    expect(await outcomeOf(500)).toEqual([{ name: 'a' }]);
    answers[2]?.(named('a', 'b'));
    await flush();
    expect(late).toBe(2);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a URI', () => {
  const expression = fc.stringMatching(/^\{[+#./;?&]?[a-z]{1,4}\*?\}$/);
  const literal = fc.stringMatching(/^[a-z:/.?=&%-]{0,6}$/);
  const value = fc.stringMatching(/^[A-Za-z0-9/.:-]{0,8}$/);

  test('made out of a template fits it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(literal, expression, value), { minLength: 1, maxLength: 6 }),
        literal,
        (parts, end) => {
          const template = parts.map(([text, place]) => `${text}${place}`).join('') + end;
          const uri = parts.map(([text, , filled]) => `${text}${filled}`).join('') + end;
          expect(closeness(template, uri)).toBeTypeOf('number');
        },
      ),
    );
  });

  test('that lacks a literal of it does not', () => {
    expect(closeness('file:///{path}', 'file:///a/b')).toBe(8);
    expect(closeness('file:///{path}', 'http://a')).toBeUndefined();
    expect(closeness('a{x}b{y}c', 'aXbYc')).toBe(3);
    expect(closeness('a{x}b{y}c', 'aXYc')).toBeUndefined();
    // Literals may not overlap.
    expect(closeness('ab{x}ba', 'aba')).toBeUndefined();
    expect(closeness('plain', 'plain')).toBe(5);
    expect(closeness('plain', 'plainer')).toBeUndefined();
  });

  test('takes no longer than reading it, whatever the template', () => {
    const template = `${'{a}x'.repeat(5_000)}{b}`;
    expect(closeness(template, 'x'.repeat(5_000))).toBe(5_000);
    expect(closeness(template, 'y'.repeat(1_000_000))).toBeUndefined();
  });

  verifies('catalog.uris', () => {
    const of = (source: string, uris: string[], templates: string[] = []) => ({
      source,
      resources: { items: uris.map((uri) => ({ uri })), rest: {} },
      templates: { items: templates.map((uriTemplate) => ({ uriTemplate })), rest: {} },
    });
    const sources = [
      of('a', ['x://1'], ['x://{id}']),
      of('b', ['x://1', 'x://2'], ['x://item/{id}']),
      of('c', []),
    ];
    // Listed: the first that lists it, and nobody else.
    expect(whoHas('x://1', sources)).toEqual(['a']);
    expect(whoHas('x://2', sources)).toEqual(['b']);
    // By template: the best fit first. Else in the order of the configuration.
    expect(whoHas('x://item/7', sources)).toEqual(['b', 'a', 'c']);
    expect(whoHas('y://7', sources)).toEqual(['a', 'b', 'c']);
    expect(whoHas('__proto__', sources)).toEqual(['a', 'b', 'c']);
  });
});

describe('a catalogue', () => {
  const sourceOf = (name: string, tools: () => Json): Source => {
    const { session } = sessionOf(tools);
    return { name, session, lists: createLists(session, OPTIONS), shared: false };
  };
  const failing = (): Json => {
    throw new Error('dead');
  };

  verifies('catalog.names-stay', async () => {
    let dead = false;
    const alpha = sourceOf('alpha', () => (dead ? failing() : named('search', 'one')));
    const beta = sourceOf('beta', () => named('search'));
    const catalog = new Catalog({ sources: () => [alpha, beta], transparent: false });
    const names = async () =>
      ((await catalog.list('tools')).result.tools as Json[]).map(({ name }) => name);
    expect(await names()).toEqual(['alpha__search', 'one', 'beta__search']);
    // Its upstream has gone: the others keep their names, and its own still lead to it.
    dead = true;
    alpha.lists.tools.invalidate();
    expect(await names()).toEqual(['beta__search']);
    expect((await catalog.named('tools', 'alpha__search'))?.source).toBe(alpha);
    expect(await catalog.named('tools', 'search')).toBeUndefined();
    expect(catalog.similar('tools', 'search')).toEqual(['alpha__search', 'beta__search']);
  });

  test('shows an entry once, and leaves out what has no name', async () => {
    const one = sourceOf('one', () => ({
      tools: [{ name: 'a', n: 1 }, { name: 'a', n: 2 }, { n: 3 }, null, 'x'],
    }));
    const two = sourceOf('two', () => named('b'));
    const catalog = new Catalog({ sources: () => [one, two], transparent: false });
    expect((await catalog.list('tools')).result.tools).toEqual([
      { name: 'a', n: 1 },
      { name: 'b' },
    ]);
  });

  test('finds a name without having been asked for a list before', async () => {
    const one = sourceOf('one', () => named('a'));
    const two = sourceOf('two', failing);
    const catalog = new Catalog({ sources: () => [one, two], transparent: false });
    expect(await catalog.named('tools', 'a')).toMatchObject({ name: 'a', item: { name: 'a' } });
  });

  test('that is shown as it is looks once for what is called unseen, and waits for nothing', async () => {
    let lists = 0;
    const { session } = sessionOf(() => {
      lists += 1;
      return failing();
    });
    const only = {
      name: 'only',
      session,
      lists: createLists(session, { ...OPTIONS, verbatim: true }),
      shared: false,
    };
    const catalog = new Catalog({ sources: () => [only], transparent: true });
    for (let n = 0; n < 3; n += 1) {
      expect(await catalog.named('tools', 'a')).toEqual({
        source: only,
        name: 'a',
        item: undefined,
      });
      await flush();
    }
    expect(lists).toBe(1);
  });

  test("gives the gateway's own tool a name that nobody else has", async () => {
    const one = sourceOf('one', () => named('health_check', 'gateway_health_check'));
    const two = sourceOf('two', () => named('b'));
    const catalog = new Catalog({
      sources: () => [one, two],
      transparent: false,
      own: { tools: [{ name: 'health_check', title: 'own' }], resources: [], prompts: [] },
    });
    expect((await catalog.list('tools')).result.tools).toEqual([
      { name: 'health_check' },
      { name: 'gateway_health_check' },
      { name: 'b' },
      { name: 'gateway_health_check_2', title: 'own' },
    ]);
  });
});
