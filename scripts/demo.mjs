import { join } from 'node:path'
import { root } from './setup/root.mjs'
import { runPinned } from './setup/run-pinned.mjs'
import { setUp } from './setup/set-up.mjs'
import { untilInterrupted } from './setup/until-interrupted.mjs'

await untilInterrupted(async (signal) => {
  await setUp({ signal })
  return 0
})
if (!process.exitCode) {
  process.exitCode = await runPinned([
    join(root, 'packages/cli/src/main.ts'),
    'demo',
    ...process.argv.slice(2),
  ])
}
