import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { childEnvironment } from '../../src/gateway/child-environment.ts';
import { ChildStderr } from '../../src/gateway/child-stderr.ts';
import { idOfCut, parseMessages } from '../../src/gateway/link-message.ts';
import { LineFramer } from '../../src/mcp/transports/line-framer.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

/** The id that is found in a text of which a framer kept both ends. */
const found = (text: string) => {
  const [frame] = new LineFramer(1_024).push(Buffer.from(`${text}\n`));
  return frame?.kind === 'too-long' ? idOfCut(frame.head, frame.tail) : 'not cut';
};

describe('messages', () => {
  test('are told from other JSON', () => {
    const messages = [
      { jsonrpc: '2.0', method: 'x' },
      { jsonrpc: '2.0', id: 1, method: 'x', params: {}, 'x-vendor': 1 },
      { jsonrpc: '2.0', id: 'a', result: {} },
      { jsonrpc: '2.0', id: null, error: { code: 1, message: '' } },
    ];
    for (const message of messages) {
      expect(parseMessages(JSON.stringify(message))).toEqual([message]);
    }
    expect(parseMessages(JSON.stringify(messages))).toEqual(messages);
    const others = [1, null, 'x', {}, { jsonrpc: '1.0', method: 'x' }, { jsonrpc: '2.0', id: 1 }];
    for (const other of [...others, { jsonrpc: '2.0', id: 1, error: 7 }, [messages[0], 1]]) {
      expect(parseMessages(JSON.stringify(other))).toBeUndefined();
    }
    expect(parseMessages('{')).toBeUndefined();
  });

  test('keep members that break naive code', () => {
    const text = '{"jsonrpc":"2.0","id":1,"result":{"__proto__":{"a":1},"constructor":2}}';
    expect(JSON.stringify(parseMessages(text)?.[0])).toBe(text);
  });

  test('that were cut still tell which request they answer, in whatever order', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.nat(), fc.string({ maxLength: 50 })),
        fc.string({ minLength: 2_000, maxLength: 4_000 }),
        fc.constantFrom(0, 1),
        fc.shuffledSubarray(['jsonrpc', 'id', 'result'], { minLength: 3 }),
        (id, text, space, order) => {
          const whole: Record<string, unknown> = { jsonrpc: '2.0', id, result: { text } };
          const message = Object.fromEntries(order.map((key) => [key, whole[key]]));
          const cut = found(
            space
              ? JSON.stringify(message, undefined, 1).replaceAll('\n', ' ')
              : JSON.stringify(message),
          );
          expect(cut).toBe(id);
        },
      ),
    );
  });

  test('of the other side, and ids deeper down, are not taken for answers', () => {
    const text = 'x'.repeat(3_000);
    for (const message of [
      { jsonrpc: '2.0', id: 5, method: 'sampling/createMessage', params: { text } },
      { jsonrpc: '2.0', method: 'x', params: { text, id: 5 } },
      { jsonrpc: '2.0', method: 'x', params: { id: 5, text } },
      { text, list: [{ a: 1, id: 5 }] },
      { text: `${text},"id":5}` },
    ]) {
      expect(found(JSON.stringify(message))).toBeUndefined();
    }
  });
});

describe('environment of a child', () => {
  test('is a short list under what was configured', () => {
    const ours = {
      PATH: '/bin',
      HOME: '/h',
      SECRET: 's',
      LANG: 'de',
      SHELL: '() { evil; }',
      Path: 'x',
    };
    expect(childEnvironment({ A: '1', HOME: '/other' }, ours, 'linux')).toEqual({
      PATH: '/bin',
      LANG: 'de',
      HOME: '/other',
      A: '1',
    });
    expect(childEnvironment({}, { ...ours, SYSTEMROOT: 'C:\\Windows' }, 'win32')).toEqual({
      PATH: '/bin',
      SYSTEMROOT: 'C:\\Windows',
    });
  });
});

describe('stderr of a child', () => {
  const open = (secrets: readonly string[] = []) => {
    const clock = new ManualClock();
    const logged: string[] = [];
    const log = (line: string) => void logged.push(line);
    const stderr = new ChildStderr({ name: 'u', secrets, log, clock });
    return { clock, logged, stderr, say: (text: string) => stderr.push(Buffer.from(text)) };
  };

  test('is passed on by line, without secrets and control characters', () => {
    const { logged, say, stderr } = open(['super-secret-value-2', 'super-secret-value']);
    say('one\ntw');
    say('o\r\n\n');
    say('key super-secret-value-2 and super-secret-value\n');
    say('\u001b[31mred\u0007 Authorization: Bearer abcdefgh1234\n');
    say('last');
    expect(logged).toHaveLength(4);
    stderr.end();
    expect(logged).toEqual([
      'u: one',
      'u: two',
      'u: key *** and ***',
      'u: [31mred Authorization: ***',
      'u: last',
    ]);
    expect(stderr.lastWords).toBe(logged.map((line) => line.slice(3)).join('\n'));
  });

  test('a secret that the end of a long line cut is masked as well', () => {
    const { logged, say } = open(['super-secret-value']);
    // The beginning that is kept has 512 bytes.
    say(`${'x'.repeat(500)}super-secret-value${'y'.repeat(20_000)}\n`);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatch(/^u: x{500}\*\*\* … \(a line of more than 16384 bytes\)$/);
  });

  test('beyond the rate is counted, and the count told once a second', async () => {
    const { clock, logged, say, stderr } = open();
    say('noise\n'.repeat(150));
    expect(logged).toHaveLength(100);
    await clock.advance(1_000);
    expect(logged.slice(100)).toEqual(['u: 50 more lines on stderr, left out']);
    say('noise\n'.repeat(30));
    expect(logged).toHaveLength(121);
    say('the end\n');
    expect(stderr.lastWords).toBe('noise\nnoise\nnoise\nnoise\nthe end');
    stderr.end();
    expect(logged.at(-1)).toBe('u: 11 more lines on stderr, left out');
    expect(clock.pendingTimers).toBe(0);
  });

  test('a child that said nothing has no last words', () => {
    const { stderr, logged } = open();
    stderr.end();
    expect(stderr.lastWords).toBeUndefined();
    expect(logged).toEqual([]);
  });
});
