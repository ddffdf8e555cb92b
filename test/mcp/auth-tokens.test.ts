import { createHash, timingSafeEqual } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createAuthenticator } from '../../src/mcp/auth.ts';
import type { AuthSettings } from '../../src/mcp/auth-settings.ts';
import { verifies } from '../fixtures/verifies.ts';
import { initialize, openDoor, post } from './support/door.ts';

// The real one, watched.
vi.mock(import('node:crypto'), async (importOriginal) => {
  const original = await importOriginal();
  return { ...original, timingSafeEqual: vi.fn(original.timingSafeEqual) };
});

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const TOKENS = { anna: 'a'.repeat(32), bert: 'b'.repeat(16), cleo: 'c'.repeat(40) };

const settings: AuthSettings = {
  tokens: [
    { principal: 'anna', env: 'ANNA_TOKEN' },
    { principal: 'bert', sha256: sha256(TOKENS.bert) },
    { principal: 'cleo', sha256: sha256(TOKENS.cleo).toUpperCase(), scopes: ['read'] },
  ],
};
// An editor or a mount often leaves a line break behind.
const env = { ANNA_TOKEN: `${TOKENS.anna}\n` };

const statusFor = async (auth: AuthSettings) => {
  const { authenticate, documents } = createAuthenticator(auth, { env });
  const { door } = await openDoor({ authenticate, documents });
  return async (authorization: string) =>
    (await post(door, initialize(), { authorization })).status;
};

beforeEach(() => {
  vi.mocked(timingSafeEqual).mockClear();
});

describe('static tokens', () => {
  verifies('auth.static', async () => {
    const status = await statusFor(settings);
    for (const token of Object.values(TOKENS)) expect(await status(`Bearer ${token}`)).toBe(200);
    for (const wrong of ['a'.repeat(31), 'a'.repeat(33), 'A'.repeat(32), sha256(TOKENS.bert)]) {
      expect(await status(`Bearer ${wrong}`)).toBe(401);
    }
    const limited = await statusFor({ ...settings, scopes: ['read', 'write'] });
    // One that names no scopes has them all.
    expect(await limited(`Bearer ${TOKENS.anna}`)).toBe(200);
    expect(await limited(`Bearer ${TOKENS.cleo}`)).toBe(403);
    // Without an authorization server there is nowhere to send a client.
    const { documents } = createAuthenticator(settings, { env });
    expect(documents).toEqual({});
  });

  verifies('auth.constant-time', async () => {
    const status = await statusFor(settings);
    const compared = async (token: string): Promise<[number, number[]]> => {
      vi.mocked(timingSafeEqual).mockClear();
      const code = await status(`Bearer ${token}`);
      return [code, vi.mocked(timingSafeEqual).mock.calls.map(([a]) => a.byteLength)];
    };
    const all = [32, 32, 32];
    for (const token of Object.values(TOKENS)) expect(await compared(token)).toEqual([200, all]);
    for (const token of ['x', 'x'.repeat(5_000), `${'a'.repeat(31)}b`]) {
      expect(await compared(token)).toEqual([401, all]);
    }
  });

  test('a variable that holds no token is an error at the start, without its value', () => {
    const tokens = [
      { principal: 'anna', env: 'ANNA_TOKEN' },
      { principal: 'bert', env: 'SHORT' },
      { principal: 'cleo', env: 'UNSET' },
    ];
    expect(() => createAuthenticator({ tokens }, { env: { ...env, SHORT: 'hunter2' } })).toThrow(
      expect.objectContaining({
        problems: [
          'auth: the token of "bert": the variable SHORT has fewer than 16 characters; make one with: openssl rand -hex 32; ' +
            'the token of "cleo": the variable UNSET is not set; make one with: openssl rand -hex 32',
        ],
      }),
    );
  });
});
