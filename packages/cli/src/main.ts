import { createProcessDeps } from './deps.ts'
import { runCli } from './run-cli.ts'

await runCli(
  process.argv.slice(2),
  createProcessDeps(async () => (await import('./stack/create-parts.ts')).createParts()),
)
