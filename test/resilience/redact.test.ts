import fc from 'fast-check';
import { expect } from 'vitest';
import { redact } from '../../src/resilience/redact.ts';
import { verifies } from '../fixtures/verifies.ts';

/** Made in parts, so that scanners of this repository find no key in it. */
const key = (prefix: string) => `${prefix}${'0aB1cD2eF3'.repeat(4)}`;

verifies('redact.secrets', () => {
  const jwt = `${key('eyJ')}.${key('eyJ')}.${key('')}`;
  const pem = (kind: string) => `-----${kind} RSA PRIVATE KEY-----`;
  for (const [text, shown] of [
    ['http://me:pw@h:1/x?key=1', 'http://***@h:1/x?***'],
    ['postgres://me:pa/ss@host/db', 'postgres://***@host/db'],
    ['redis://:p?w@host:6379', 'redis://***@host:6379'],
    ['see (https://h/p?q=1#f).', 'see (https://h/p?***).'],
    ['https://h/p#token', 'https://h/p#***'],
    ['"https://h/p?q=1","next"', '"https://h/p?***","next"'],
    ['GET /v1/x?api_key=abc 500', 'GET /v1/x?*** 500'],
    ['Authorization: Bearer abc', 'Authorization: ***'],
    ['authorization=Basic bWU6cHc=', 'authorization=***'],
    ['used Bearer abcdef123456==', 'used Bearer ***'],
    ['OPENAI_API_KEY=abc', 'OPENAI_API_KEY=***'],
    ['{"client_secret":"a\\"b","x":1}', '{"client_secret":"***","x":1}'],
    ['{\\"token\\":\\"abc\\",\\"x\\":1}', '{\\"token\\":\\"***\\",\\"x\\":1}'],
    ["{ password: 'a b' }", "{ password: '***' }"],
    ['Server=db;Password=abc;Uid=me', 'Server=db;Password=***;Uid=me'],
    ['Cookie: a=b; c=d\nHost: h', 'Cookie: ***\nHost: h'],
    ['"cookie":"a=b; c=d","x":1', '"cookie":"***","x":1'],
    ['server --api-key abc --port 1', 'server --api-key *** --port 1'],
    [`jwt ${jwt} end`, 'jwt *** end'],
    [`${pem('BEGIN')}\nabc\n${pem('END')} end`, '*** end'],
    [`${pem('BEGIN')}\nabc`, '***'],
    ...['sk-', 'sk_live_', 'ghp_', 'github_pat_', 'glpat-', 'xoxb-', 'AKIA', 'AIza', 'npm_'].map(
      (prefix) =>
        [
          `invalid key ${prefix === 'AKIA' ? key(prefix).toUpperCase() : key(prefix)}.`,
          'invalid key ***.',
        ] as const,
    ),
  ] as const)
    expect(redact(text), text).toBe(shown);

  for (const text of [
    'Bearer token expired',
    'Basic authentication failed',
    'max_tokens: 4096',
    "Unexpected token '<', line 1",
    'connect ECONNREFUSED 127.0.0.1:443',
    'https://registry.example/@scope/pkg/-/pkg-1.0.0.tgz',
    'http://[::1]:8080/a@b',
    'What is this? a=b',
    'no cookie was set',
    'The author did not sign the task-list',
  ])
    expect(redact(text), text).toBe(text);
});

/** Pieces that, put together, come close to secrets. */
const fragments = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ...['://', 'http://', '@', ':', '/', '?', '#', '=', ' ', '"', "'", '\\"', '***', '\n', '.'],
        ...['token', 'password', 'api_key', 'cookie', 'authorization', 'Bearer', 'Basic', '--key'],
        ...[
          'eyJ',
          'sk-',
          'AKIA',
          'SG.',
          'abcdefgh1',
          'ABCDEFGH1234',
          ')',
          '}',
          ',',
          ';',
          '&',
          '\\',
        ],
        ...['-----BEGIN PRIVATE KEY-----', '-----END PRIVATE KEY-----'],
      ),
      fc.string({ maxLength: 4 }),
    ),
    { maxLength: 24 },
  )
  .map((parts) => parts.join(''));

verifies('redact.idempotent', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fragments), (text) => {
      const once = redact(text);
      expect(redact(once)).toBe(once);
    }),
    { numRuns: 5_000 },
  );
});

verifies('redact.linear', () => {
  const size = 200_000;
  for (const piece of [
    ...['a', ' ', '/', '?', '@', ')', 'eyJ', 'eyJaaaaaaaa.', 'token ', 'token=', 'token:"', '\\"'],
    ...[
      '://',
      '://a:',
      '?a=',
      'bearer ',
      'basic a',
      '--a-',
      'cookie',
      'SG.aaaaaaaaaa',
      '-----BEGIN ',
    ],
    ...['-----BEGIN PRIVATE KEY-----', 'password\\"', '\ud800', '***', 'sk-', 'api_key = ', '"'],
  ]) {
    const started = performance.now();
    redact(piece.repeat(size / piece.length));
    // A few milliseconds each; what is quadratic takes minutes.
    expect(performance.now() - started, piece).toBeLessThan(2_000);
  }
});
