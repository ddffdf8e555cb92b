import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  MAX_NAME_LENGTH,
  type NamingOptions,
  nameTable,
  type PrefixMode,
  type UpstreamNames,
} from '../../src/gateway/naming.ts';
import { verifies } from '../fixtures/verifies.ts';

const shownBy = (upstreams: readonly UpstreamNames[], options?: NamingOptions) =>
  nameTable(upstreams, options).entries.map(({ shown }) => shown);

/** Every name that clients see, by where it comes from. */
const shownOf = (upstreams: readonly UpstreamNames[], options?: NamingOptions) =>
  new Map(
    nameTable(upstreams, options).entries.map(({ upstream, name, shown }) => [
      JSON.stringify([upstream, name]),
      shown,
    ]),
  );

const server = fc.constantFrom('a', 'b', 'a__b', 'b__a', 'x.y', 'a'.repeat(64));

/** Few letters, so that names collide, their prefixed and their hashed forms too. */
const toolName = fc.oneof(
  fc.stringMatching(/^[ab_]{1,6}$/),
  fc.constantFrom('a__a', 'a__b', 'b__a', 'a b', 'a  b', 'a_b', 'a/b', '', '__proto__', 'toString'),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.string({ minLength: 60, maxLength: 140 }),
  // What a hostile server would offer: the names that others get.
  fc.constantFrom(
    ...shownBy([{ upstream: 'a', names: ['a b', 'a/b', '', '__proto__'] }]),
    ...shownBy([
      { upstream: 'a', names: ['a__a', 'a'] },
      { upstream: 'b', names: ['a'] },
    ]),
    ...shownBy(
      [
        { upstream: 'a', names: ['a', 'ab'] },
        { upstream: 'b', names: ['a', 'ab'] },
      ],
      { prefix: 'never' },
    ),
  ),
);

const upstreamList = fc.uniqueArray(
  fc.record({ upstream: server, names: fc.array(toolName, { maxLength: 8 }) }),
  { selector: ({ upstream }) => upstream, maxLength: 5 },
);

const naming = fc.record({
  prefix: fc.constantFrom<PrefixMode>('auto', 'always', 'never'),
  separator: fc.constantFrom('__', '_', '.', '-'),
});

describe('names that clients see', () => {
  verifies('naming.injective', () => {
    fc.assert(
      fc.property(upstreamList, naming, (upstreams, options) => {
        const table = nameTable(upstreams, options);
        const offered = upstreams.flatMap(({ upstream, names }) =>
          [...new Set(names)].map((name) => ({ upstream, name })),
        );
        expect(table.entries).toHaveLength(offered.length);
        expect(new Set(table.entries.map(({ shown }) => shown)).size).toBe(offered.length);
        for (const { upstream, name } of offered) {
          const shown = table.shown(upstream, name) ?? '';
          expect(shown).toMatch(/^[A-Za-z0-9_.-]{1,64}$/);
          expect(shown).not.toBe('__proto__');
          expect(table.find(shown)).toMatchObject({ upstream, name, shown });
        }
      }),
      { numRuns: 2_000 },
    );
  });

  verifies('naming.stable', () => {
    const shuffled = upstreamList.chain((upstreams) =>
      fc.tuple(
        fc.constant(upstreams),
        fc.shuffledSubarray(upstreams, { minLength: upstreams.length }),
      ),
    );
    fc.assert(
      fc.property(shuffled, naming, ([upstreams, others], options) => {
        const reversed = others.map(({ upstream, names }) => ({
          upstream,
          names: names.toReversed(),
        }));
        const before = shownOf(upstreams, options);
        const after = shownOf(reversed, options);
        expect(Object.fromEntries(after)).toEqual(Object.fromEntries(before));
      }),
      { numRuns: 1_000 },
    );
    // Its names begin with a letter that no other name has: nothing can collide with them.
    const stranger = fc.record({
      upstream: fc.constant('stranger'),
      names: fc.array(fc.stringMatching(/^Z[ab_ é]{0,80}$/), { maxLength: 8 }),
    });
    fc.assert(
      fc.property(upstreamList, stranger, naming, (upstreams, unrelated, options) => {
        const alone = shownOf(upstreams, options);
        const together = shownOf([unrelated, ...upstreams], options);
        for (const [origin, shown] of alone) expect(together.get(origin)).toBe(shown);
      }),
      { numRuns: 1_000 },
    );
  });

  test('one upstream keeps its own names', () => {
    const names = ['read_file', 'write_file', 'a.b-c_D9', 'x'.repeat(64)];
    const { entries } = nameTable([{ upstream: 'files', names }]);
    expect(entries).toEqual(names.map((name) => ({ shown: name, upstream: 'files', name })));
  });

  verifies('naming.collision', () => {
    const { entries } = nameTable([
      { upstream: 'github', names: ['search', 'get_issue'] },
      { upstream: 'jira', names: ['search'] },
    ]);
    expect(entries).toEqual([
      { shown: 'github__search', upstream: 'github', name: 'search', reason: 'collision' },
      { shown: 'get_issue', upstream: 'github', name: 'get_issue' },
      { shown: 'jira__search', upstream: 'jira', name: 'search', reason: 'collision' },
    ]);
  });

  test('a prefix for all of them when asked, also for a single upstream', () => {
    expect(
      nameTable([{ upstream: 'jira', names: ['search'] }], { prefix: 'always', separator: '.' })
        .entries,
    ).toEqual([{ shown: 'jira.search', upstream: 'jira', name: 'search', reason: 'asked' }]);
  });

  test('without a prefix names that collide can still be called, all of them', () => {
    const table = nameTable(
      [
        { upstream: 'github', names: ['search'] },
        { upstream: 'jira', names: ['search', 'other'] },
      ],
      { prefix: 'never' },
    );
    const [github = '', jira = '', other] = table.entries.map(({ shown }) => shown);
    expect(github).toMatch(/^search_[0-9a-f]{8}$/);
    expect(jira).toMatch(/^search_[0-9a-f]{8}$/);
    expect(other).toBe('other');
    expect(table.find(jira)?.upstream).toBe('jira');
  });

  test('a prefixed name that is somebody’s own name already makes that one change', () => {
    const upstreams = [
      { upstream: 'a', names: ['search'] },
      { upstream: 'b', names: ['search'] },
      { upstream: 'c', names: ['a__search'] },
    ];
    expect(shownBy(upstreams)).toEqual(['a__search', 'b__search', 'c__a__search']);
    const split = [
      { upstream: 'a', names: ['b__c'] },
      { upstream: 'a__b', names: ['c'] },
    ];
    // Equals: neither was there first.
    for (const shown of shownBy(split, { prefix: 'always' })) {
      expect(shown).toMatch(/^a__b__c_[0-9a-f]{8}$/);
    }
  });

  test('what has other characters keeps its beginning and gets a hash of itself', () => {
    const names = [
      'get weather',
      'get  weather',
      'get/weather',
      'Wetter für Köln',
      '天気',
      '',
      '__proto__',
    ];
    const { entries } = nameTable([{ upstream: 'w', names }]);
    expect(entries.map(({ shown }) => shown.replace(/[0-9a-f]{8}$/, '#'))).toEqual([
      'get_weather_#',
      'get_weather_#',
      'get_weather_#',
      'Wetter_f_r_K_ln_#',
      '__#',
      '_#',
      '__proto___#',
    ]);
    expect(new Set(entries.map(({ reason }) => reason))).toEqual(new Set(['characters']));
    // The hash is that of the name: it is the same in every process and for every neighbour.
    expect(entries[0]?.shown).toBe('get_weather_dce3870e');
  });

  test('what is too long is cut, with a hash of the whole at its end', () => {
    const long = `${'x'.repeat(60)}tail`;
    const entries = nameTable([{ upstream: 'w', names: [`${long}1`, `${long}2`] }]).entries;
    for (const { shown, reason } of entries) {
      expect([shown.length, reason]).toEqual([MAX_NAME_LENGTH, 'length']);
      expect(shown).toMatch(/^x{55}_[0-9a-f]{8}$/);
    }
    const [prefixed] = nameTable([{ upstream: 'w'.repeat(64), names: ['t'] }], {
      prefix: 'always',
    }).entries;
    expect(prefixed).toMatchObject({ reason: 'length' });
    expect(prefixed?.shown).toHaveLength(64);
  });

  test('a single upstream whose clients know its names may keep them whatever they are like', () => {
    const names = ['with space', 'x'.repeat(100), '__proto__', 'é'];
    expect(shownBy([{ upstream: 'w', names }], { prefix: 'never', safe: false })).toEqual(names);
  });

  test('a name that is listed twice counts once, and there is no name that nobody has', () => {
    const table = nameTable([{ upstream: 'a', names: ['t', 't'] }]);
    expect(table.entries).toHaveLength(1);
    for (const name of ['toString', '__proto__', 'constructor', '']) {
      expect(table.find(name)).toBeUndefined();
      expect(table.shown('a', name)).toBeUndefined();
      expect(table.shown(name, 't')).toBeUndefined();
    }
  });
});
