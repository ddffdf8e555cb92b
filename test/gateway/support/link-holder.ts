/**
 * A process that holds an upstream as its child and then ends in the way that its first argument
 * names: `exit`, `throw`, or by being killed. Writes the ids of child and grandchild to the file
 * that the second names.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLink } from '../../../src/gateway/create-link.ts';
import { child, upstreamConfig } from './link-config.ts';

const [how, file = ''] = process.argv.slice(2);
const grandchild = `${file}.grandchild`;
const link = createLink(upstreamConfig(child({ grandchild })));
await link.open();
while (!existsSync(grandchild) || readFileSync(grandchild, 'utf8') === '') await sleep(10);
writeFileSync(`${file}.new`, `${link.facts.pid} ${readFileSync(grandchild, 'utf8')}`);
// Whoever looks at the file finds it whole.
renameSync(`${file}.new`, file);
if (how === 'exit') process.exit(0);
if (how === 'throw') throw new Error('uncaught');
