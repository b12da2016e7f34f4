import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { glob, mkdir, readFile, rename } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const packages = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
/** Everything that the bundle can contain; also what its name is a hash of. */
const sources = ['agent-server', 'core', 'protocol', 'sandbox', 'workspace']

/**
 * The one program that runs inside a sandbox, bundled into `outDir` as `<hash>/agent-server.mjs`; returns its path. The hash is that of the
 * sources, so that a later start only reads them (10 ms) and an older server that is still running keeps its file.
 */
export async function buildAgentServer(outDir: string): Promise<string> {
  const folder = join(outDir, (await sourceHash()).slice(0, 16))
  const path = join(folder, 'agent-server.mjs')
  if (existsSync(path)) return path
  await mkdir(folder, { recursive: true })
  const temporary = join(folder, `${randomUUID()}.mjs`)
  // Only loaded when it is needed: it starts a process of its own.
  const { build } = await import('esbuild')
  await build({
    entryPoints: [join(packages, 'agent-server', 'src', 'inside', 'main.ts')],
    outfile: temporary,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    legalComments: 'none',
    logLevel: 'error',
  })
  await rename(temporary, path)
  return path
}

async function sourceHash(): Promise<string> {
  const files: string[] = []
  for (const name of sources) {
    for await (const file of glob('**/*.ts', { cwd: join(packages, name, 'src') })) {
      if (!file.endsWith('.test.ts')) files.push(join(packages, name, 'src', file))
    }
  }
  const digest = createHash('sha256').update(
    createRequire(import.meta.url)('esbuild/package.json').version as string,
  )
  const contents = await Promise.all(files.sort().map((file) => readFile(file)))
  for (const [index, content] of contents.entries())
    digest.update(`${files[index]} ${content.length}\n`).update(content)
  return digest.digest('hex')
}
