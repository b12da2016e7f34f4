import { enableCompileCache, flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

// Before anything else is loaded: stripping and compiling the sources is more than half of every start.
const compiled = fileURLToPath(new URL('../../../node_modules/.cache/tutti/compiled', import.meta.url))
process.env['NODE_COMPILE_CACHE'] ??= compiled
enableCompileCache(process.env['NODE_COMPILE_CACHE'])

const [{ createProcessDeps }, { runCli }] = await Promise.all([import('./deps.ts'), import('./run-cli.ts')])

await runCli(
  process.argv.slice(2),
  createProcessDeps(async () => {
    const { createParts } = await import('./stack/create-parts.ts')
    // A server may end without an exit of its own, and would then never leave what it has compiled.
    flushCompileCache()
    return createParts()
  }),
)
