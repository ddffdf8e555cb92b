/**
 * @module
 * The fixture server as a child process on stdio, over the SDK's own transport.
 */
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { createFixtureServer } from './fixture-server.ts';

await createFixtureServer().connect(new StdioServerTransport());
