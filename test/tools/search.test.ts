import { describe, expect, test } from 'vitest';
import { htmlText } from '../../src/tools/html-text.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';
import { answer, json } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { codeOf, openTools, pages, textOf } from './support.ts';

const once = { policies: { search: { retry: false }, get_weather: { retry: false } } } as const;

verifies('search.results', async () => {
  const { call, wiki, registry } = await openTools(once);
  wiki.on(
    '/w/api.php',
    json(
      pages(
        {
          title: 'AC/DC & friends?',
          snippet:
            '<span class="searchmatch">High</span> voltage &amp;lt;b&amp;gt; &lt;i&gt;\n&quot;rock&quot;',
        },
        { title: 'Ångström' },
      ),
    ),
  );
  const result = await call('search', { query: '  volt & "ampere" + #1  ', limit: 2 });
  expect(result.structuredContent).toEqual({
    query: 'volt & "ampere" + #1',
    results: [
      {
        title: 'AC/DC & friends?',
        snippet: 'High voltage &lt;b&gt; <i> "rock"',
        link: `${wiki.url}/wiki/AC%2FDC_%26_friends%3F`,
      },
      { title: 'Ångström', snippet: '', link: `${wiki.url}/wiki/%C3%85ngstr%C3%B6m` },
    ],
    total: 42,
  });
  expect(textOf(result)).toContain('1. AC/DC & friends?\n');
  expect(Object.fromEntries(wiki.requests[0]?.query ?? [])).toEqual({
    action: 'query',
    list: 'search',
    srsearch: 'volt & "ampere" + #1',
    format: 'json',
    srlimit: '2',
    utf8: '1',
  });

  wiki.on('/w/api.php', json({ query: { search: [] } }));
  const none = await call('search', { query: 'qqqq' });
  expect(none.isError).toBeUndefined();
  expect(none.structuredContent).toEqual({ query: 'qqqq', results: [] });
  expect(textOf(none)).toContain('Nothing was found');

  const errors: [string, string][] = [
    ['ratelimited', 'RATE_LIMITED'],
    ['cirrussearch-too-busy-error', 'RATE_LIMITED'],
    ['badvalue', 'REQUEST_REJECTED'],
    ['readonly', 'UPSTREAM_UNAVAILABLE'],
    ['internal_api_error_DBQueryError', 'UPSTREAM_ERROR'],
  ];
  for (const [code, expected] of errors) {
    wiki.on('/w/api.php', json({ error: { code, info: `it says <b>${code}</b>` } }));
    const failed = await call('search', { query: `error ${code}` });
    expect(codeOf(failed)).toBe(expected);
    expect(textOf(failed)).toContain(`it says ${code}`);
  }
  expect(registry.get('search-api')?.breaker?.toJSON().failureCount).toBe(2);
  wiki.on('/w/api.php', json({ something: 'else' }));
  expect(codeOf(await call('search', { query: 'odd' }))).toBe('UPSTREAM_INVALID_RESPONSE');
});

verifies('search.input-validated', async () => {
  const { call, wiki } = await openTools(once);
  const wrong: [Record<string, unknown>, RegExp][] = [
    [{ query: '  ' }, /query: is empty/],
    [{ query: 'x'.repeat(301) }, /query: is 301 characters long.*at most 300/],
    [{ query: 'a\u0000b' }, /query: contains a line break or control character/],
    [{ query: 'a\nb' }, /query: contains a line break/],
    [{ query: 'a\ud800' }, /query: contains half a character/],
    [{ query: 'x', limit: 0 }, /limit: /],
    [{ query: 'x', limit: 21 }, /limit: /],
    [{ query: 'x', limit: 1.5 }, /limit: /],
    [{}, /query: /],
  ];
  for (const [args, message] of wrong) {
    const result = await call('search', args);
    expect(codeOf(result)).toBe('INVALID_INPUT');
    expect(textOf(result)).toMatch(message);
  }
  expect(wiki.count()).toBe(0);
});

test('results are kept for 10 minutes, apart for each limit', async () => {
  const clock = new ManualClock();
  const { call, wiki } = await openTools({ ...once, clock });
  wiki.on('*', json(pages({ title: 'A' })), json(pages({ title: 'B' })), answer(503));
  await call('search', { query: 'a  b' });
  await clock.advance(10 * 60_000 - 1);
  expect((await call('search', { query: 'a b' }))._meta).toMatchObject({ from_cache: true });
  await call('search', { query: 'a b', limit: 3 });
  expect(wiki.count()).toBe(2);
  await clock.advance(1);
  const stale = await call('search', { query: 'a b' });
  expect(stale.structuredContent).toMatchObject({ degraded: true, results: [{ title: 'A' }] });
  expect(wiki.count()).toBe(3);
});

verifies('tools.isolated', async () => {
  const { call, weather, wiki, registry } = await openTools(once);
  weather.on('*', answer(500));
  wiki.on('*', json(pages({ title: 'A' })));
  for (let n = 0; n < 12; n += 1) await call('get_weather', { city: `Nowhere ${n}` });
  expect(registry.get('weather-api')?.breaker?.state).toBe('open');
  expect(weather.count()).toBe(3);
  const refused = await call('get_weather', { city: 'Somewhere' });
  expect(codeOf(refused)).toBe('RATE_LIMIT_EXCEEDED');

  const found = await call('search', { query: 'anything' });
  expect(found.isError).toBeUndefined();
  expect(registry.get('search-api')?.breaker?.toJSON()).toMatchObject({
    state: 'closed',
    failureCount: 0,
  });
  expect(registry.get('search-api')?.rateLimiter?.stats()).toMatchObject({
    accepted: 1,
    rejected: 0,
  });

  // A service that hangs holds no other one up.
  const other = await openTools(once);
  other.weather.on('*', () => {});
  other.wiki.on('*', json(pages({ title: 'A' })));
  const controller = new AbortController();
  const hanging = Array.from({ length: 8 }, (_, n) =>
    other.call('get_weather', { city: `Nowhere ${n}` }, { signal: controller.signal }),
  );
  expect((await other.call('search', { query: 'anything' })).isError).toBeUndefined();
  controller.abort(new Error('done'));
  const ended = await Promise.allSettled(hanging);
  expect(ended.every(({ status }) => status === 'rejected')).toBe(true);
});

describe('htmlText', () => {
  test.each([
    ['a<br>b', 'ab'],
    ['<script>alert(1)</script>', 'alert(1)'],
    ['<<b>script>x', 'scriptx'],
    ['&amp;lt;', '&lt;'],
    ['&#039;&#x27;&apos;&quot;', "'''\""],
    ['&#0;&#xD800;&#x110000;&#1114112;', '\ufffd\ufffd\ufffd'],
    ['&constructor; &unknown; & &;', '&constructor; &unknown; & &;'],
    ['a\u0000\n\tb', 'a b'],
  ])('%j', (html, text) => expect(htmlText(html)).toBe(text));

  test('takes no longer for hostile input', () => {
    const started = performance.now();
    for (const part of ['<', '<a', '&', '&#', '> <']) htmlText(part.repeat(1_000_000));
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
