import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { cliMain } from './cli-main.ts'

const folder = fileURLToPath(new URL('../../../node_modules/.cache/tutti/cli', import.meta.url))

/**
 * The command line bundled into a few files; returns the path of its main file. From its sources a server loads 2250 modules, which is
 * half of the processor time of its start, and the tests start some hundred. Every file keeps its own address, so that threads and
 * programs beside it are found where they are. Files are named after their contents: an older bundle that is still running keeps its own.
 */
export async function bundleCli(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [cliMain],
    // As deep as where it goes: what stays outside is imported by relative paths.
    outdir: join(folder, 'bundle'),
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    legalComments: 'none',
    logLevel: 'error',
    banner: {
      js: `import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(${JSON.stringify(pathToFileURL(cliMain).href)});`,
    },
    plugins: [keptAddresses, keptOutside],
  })
  const digest = createHash('sha256')
  for (const { path, contents } of outputFiles) digest.update(path).update(contents)
  const target = join(folder, digest.digest('hex').slice(0, 16))
  const main = join(target, 'main.mjs')
  if (existsSync(main)) return main
  const temporary = `${target}.${process.pid}`
  await mkdir(temporary, { recursive: true })
  for (const { path, contents } of outputFiles) await writeFile(join(temporary, basename(path)), contents)
  // Another run may have been faster with the same files.
  await rename(temporary, target).catch(() => rm(temporary, { recursive: true }))
  return main
}

const keptAddresses: Plugin = {
  name: 'kept-addresses',
  setup(bundle) {
    bundle.onLoad({ filter: /\.ts$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replaceAll(
        'import.meta.url',
        JSON.stringify(pathToFileURL(path).href),
      ),
      loader: 'ts',
    }))
  },
}

/** Temporal's packages, dockerode and piscina's load native code, threads and their own files by path. */
const keptOutside: Plugin = {
  name: 'kept-outside',
  setup(bundle) {
    bundle.onResolve(
      { filter: /^(?:@temporalio\/|(?:dockerode|esbuild|piscina)$)/ },
      async ({ path, kind, resolveDir, pluginData }) => {
        if (pluginData === keptOutside) return undefined
        const resolved = await bundle.resolve(path, { kind, resolveDir, pluginData: keptOutside })
        return { ...resolved, external: true }
      },
    )
  },
}
