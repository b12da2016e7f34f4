#!/usr/bin/env node
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runPinned } from '../../../scripts/setup/run-pinned.mjs'

// Any Node from 20 on starts this; the program itself runs on the pinned one.
const main = join(dirname(fileURLToPath(import.meta.url)), '..', 'src', 'main.ts')
try {
  process.exitCode = await runPinned([main, ...process.argv.slice(2)])
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
