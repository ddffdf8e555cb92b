import { describe, expect, test } from 'vitest';
import { redact } from '../../src/resilience/redact.ts';

/** Made in parts, so that scanners of this repository find no key in it. */
const run = (length: number) => '0aB1cD2eF3'.repeat(10).slice(0, length);

describe('URLs', () => {
  test.each([
    ['https://me:pw@h', 'https://***@h'],
    ['https://me:pw@h/p', 'https://***@h/p'],
    ['https://me:pw@h?q=1', 'https://***@h?***'],
    ['https://me:pw@h#f', 'https://***@h#***'],
    ['https://me@h/a@b', 'https://***@h/a@b'],
    ['https://h:8080/a@b', 'https://h:8080/a@b'],
    ['https://h:12345/a@b', 'https://h:12345/a@b'],
    ['https://me:123456/x@h/p', 'https://***@h/p'],
    ['https://me:pa?ss@h/p', 'https://***@h/p'],
    ['https://me:pa#ss@h/p', 'https://***@h/p'],
    ['https://me:pa\\ss@h/p', 'https://***@h/p'],
    ['https://[::1]:80/a@b?q=1', 'https://[::1]:80/a@b?***'],
    ['https://h/p', 'https://h/p'],
    ['https://h', 'https://h'],
    ['"https://h/p?q=1"', '"https://h/p?***"'],
    ['<https://h/p?q=1>', '<https://h/p?***>'],
    ['`https://h/p?q=1`', '`https://h/p?***`'],
    ['https://h/p?q=1 and more', 'https://h/p?*** and more'],
    ['(https://h/p?q=1)', '(https://h/p?***)'],
    ['[https://h/p?q=1]', '[https://h/p?***]'],
    ['{https://h/p?q=1}', '{https://h/p?***}'],
    ['https://h/p?q=1, then', 'https://h/p?***, then'],
    ['https://h/p?q=1: no', 'https://h/p?***: no'],
    ['https://h/p?q=1; no', 'https://h/p?***; no'],
    ['https://h/p?q=1!', 'https://h/p?***!'],
    ["'https://h/p?q=1'", "'https://h/p?***'"],
    ['https://h/p?q=1)])}.', 'https://h/p?***])}.'],
    ['a https://h/p?q=1 b http://g/?r=2 c', 'a https://h/p?*** b http://g/?*** c'],
    ['GET /p?a=1 and /p?b=2', 'GET /p?*** and /p?***'],
    ['GET "/p?a.b~[x]-%20=1"', 'GET "/p?***"'],
    ["GET '/p?a=1'", "GET '/p?***'"],
    ['GET </p?a=1>', 'GET </p?***>'],
    ['GET `/p?a=1`', 'GET `/p?***`'],
    ['really? yes=no', 'really? yes=no'],
    ['what?', 'what?'],
  ])('%s', (text, shown) => {
    expect(redact(text)).toBe(shown);
  });
});

describe('named values', () => {
  test.each([
    'api_key',
    'apikey',
    'api-key',
    'API KEY',
    'accesskey',
    'access-key',
    'access_key',
    'account-key',
    'account_key',
    'accountkey',
    'privatekey',
    'private_key',
    'private-key',
    'token',
    'secret',
    'passwd',
    'password',
    'pwd',
    'passphrase',
    'authorization',
    'credential',
    'credentials',
    'sessionid',
    'session_id',
    'session-id',
    'signature',
  ])('%s', (name) => {
    expect(redact(`a ${name}=abc, b`)).toBe(`a ${name}=***, b`);
    expect(redact(`a ${name}: abc; b`)).toBe(`a ${name}: ***; b`);
    expect(redact(`a ${name} = abc&b`)).toBe(`a ${name} = ***&b`);
    expect(redact(`{"${name}": "a b", "c": 1}`)).toBe(`{"${name}": "***", "c": 1}`);
    expect(redact(`{'${name}': 'a b', 'c': 1}`)).toBe(`{'${name}': '***', 'c': 1}`);
    expect(redact(`{${name}:abc}`)).toBe(`{${name}:***}`);
    expect(redact(`[${name}=abc]`)).toBe(`[${name}=***]`);
    expect(redact(`(${name}=abc)`)).toBe(`(${name}=***)`);
  });

  test.each([
    ['token=bearer abc d', 'token=*** d'],
    ['token: Basic abc d', 'token: *** d'],
    ['token: Digest abc d', 'token: *** d'],
    ['authorization: token abc d', 'authorization: *** d'],
    ['token:  abc', 'token:  ***'],
    ['token="abc', 'token="***"'],
    ["token='abc", "token='***'"],
    ['token="a\\"b" c', 'token="***" c'],
    ['token="a\\\nb" c', 'token="***" c'],
    ['{\\"token\\":\\"a b\\"}', '{\\"token\\":\\"***\\"}'],
    ['{\\"token\\": \\"a\\\\b\\", 1}', '{\\"token\\": \\"***\\", 1}'],
    ['{\\"token\\":\\"abc', '{\\"token\\":\\"***\\"'],
    ['Cookie: a=b', 'Cookie: ***'],
    ['set-cookie: a=b; c', 'set-cookie: ***'],
    ['Set-Cookie = a=b\r\nnext', 'Set-Cookie = ***\r\nnext'],
    ['cookie:a=b\nnext', 'cookie:***\nnext'],
    ['my cookie was eaten', 'my cookie was eaten'],
    ['token of appreciation', 'token of appreciation'],
    ['secret:', 'secret:'],
    ['tokens used 5', 'tokens used 5'],
  ])('%s', (text, shown) => {
    expect(redact(text)).toBe(shown);
  });

  test.each([
    ['--token abc --x', '--token *** --x'],
    ['--key abc', '--key ***'],
    ['--secret  abc', '--secret  ***'],
    ['--password abc', '--password ***'],
    ['--passwd abc', '--passwd ***'],
    ['--my-own-api-key abc', '--my-own-api-key ***'],
    ['--client-secret "a" b', '--client-secret "a" b'],
    ['--token --verbose', '--token --verbose'],
    ['--token', '--token'],
    ['--keys abc', '--keys abc'],
    ['-token abc', '-token abc'],
    ["--token abc'd", "--token ***'d"],
    ['--token abc"d', '--token ***"d'],
  ])('of a command line: %s', (text, shown) => {
    expect(redact(text)).toBe(shown);
  });
});

describe('values that show what they are', () => {
  test.each([
    ['Bearer abc123', 'Bearer ***'],
    ['bearer  abc123', 'bearer  ***'],
    ['BASIC abcde1', 'BASIC ***'],
    ['Bearer abcd1', 'Bearer abcd1'],
    ['Bearer a1~+/-_.b==, x', 'Bearer ***, x'],
    [`Bearer ${'a'.repeat(20)}`, 'Bearer ***'],
    [`Bearer ${'a'.repeat(19)}`, `Bearer ${'a'.repeat(19)}`],
    ['forbearer abc123', 'forbearer abc123'],
  ])('%s', (text, shown) => {
    expect(redact(text)).toBe(shown);
  });

  test.each([
    ['sk-', 12],
    ['sk_', 12],
    ['pk-', 12],
    ['rk_', 12],
    ['ghp_', 16],
    ['gho_', 16],
    ['ghu_', 16],
    ['ghs_', 16],
    ['ghr_', 16],
    ['github_pat_', 16],
    ['glpat-', 12],
    ['xoxa-', 8],
    ['xoxb-', 8],
    ['xoxe-', 8],
    ['xoxo-', 8],
    ['xoxp-', 8],
    ['xoxr-', 8],
    ['xoxs-', 8],
    ['AIza', 20],
    ['ya29.', 10],
    ['npm_', 16],
    ['hf_', 16],
    ['shpat_', 16],
    ['dop_v1_', 16],
    ['pypi-', 16],
    ['npm-', 16],
  ])('a key that begins with %s, from %i characters on', (prefix, length) => {
    expect(redact(`see ${prefix}${run(length)}, x`)).toBe('see ***, x');
    const short = `see ${prefix}${run(length - 1)}, x`;
    expect(redact(short)).toBe(short);
    const inside = `seex${prefix}${run(length)}, x`;
    expect(redact(inside)).toBe(inside);
  });

  test('AWS, SendGrid and JWT', () => {
    for (const prefix of ['AKIA', 'ASIA']) {
      expect(redact(`${prefix}${run(12).toUpperCase()} x`)).toBe('*** x');
      expect(redact(`${prefix}${run(11).toUpperCase()} x`)).not.toContain('***');
      expect(redact(`${prefix}${run(12)} x`)).not.toContain('***');
    }
    expect(redact(`SG.${run(10)}.${run(10)} x`)).toBe('*** x');
    expect(redact(`SG.${run(9)}.${run(10)} x`)).not.toContain('***');
    expect(redact(`SG.${run(10)}.${run(9)} x`)).not.toContain('***');
    expect(redact(`eyJ${run(8)}.${run(3)} x`)).toBe('*** x');
    expect(redact(`eyJ${run(8)}. x`)).toBe('*** x');
    expect(redact(`eyJ${run(8)}.a.b.c.d x`)).toBe('*** x');
    expect(redact(`eyJ${run(7)}.${run(3)} x`)).not.toContain('***');
    expect(redact(`eyJ${run(8)} x`)).not.toContain('***');
  });

  test('private keys of every kind, whole or cut off', () => {
    const pem = (kind: string, edge: string) => `-----${edge} ${kind}PRIVATE KEY-----`;
    for (const kind of ['', 'RSA ', 'EC ', 'OPENSSH ']) {
      const text = `a ${pem(kind, 'BEGIN')}\nabc\n\ndef\n${pem(kind, 'END')} b`;
      expect(redact(text)).toBe('a *** b');
      expect(redact(`a ${pem(kind, 'BEGIN')}\nabc\ndef`)).toBe('a ***');
    }
    const two = `${pem('', 'BEGIN')}a${pem('', 'END')} between ${pem('', 'BEGIN')}b${pem('', 'END')}`;
    expect(redact(two)).toBe('*** between ***');
  });

  test('what one mark completes is masked as well', () => {
    expect(redact('token=a https://h/?x=1 password=b')).toBe(
      'token=*** https://h/?*** password=***',
    );
  });
});
