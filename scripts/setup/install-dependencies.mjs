import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pinnedNode } from './pinned-node.mjs'
import { root } from './root.mjs'
import { runStep } from './run-step.mjs'
import { setUpError } from './set-up-error.mjs'

/** The package manager, always by this version: it is fetched by npx, never installed. */
const PNPM = ['--yes', 'pnpm@12.21.0']

const stamp = join(root, 'node_modules', '.cache', 'tutti', 'installed')

/**
 * Installs what the lockfile names, or nothing when that is already there.
 *
 * @param {{signal: AbortSignal}} options
 */
export async function installDependencies({ signal }) {
  const wanted = fingerprint()
  if (pinnedNode() && read(stamp) === wanted) return
  const installed = await runStep(
    'Installing packages (the first time takes a minute)',
    'npx',
    [...PNPM, 'install', '--frozen-lockfile', '--reporter=append-only'],
    // In CI mode pnpm never stops to ask a question that nobody would see.
    { signal, env: { ...process.env, CI: 'true' } },
  )
  if (!installed.ok) {
    throw setUpError(
      `The packages could not be installed:\n${tail(installed.output)}\n` +
        'If that reads like a network failure, check that `npm ping` works here and run this again. ' +
        'If it says that the lockfile is out of date, run: npx pnpm@12.21.0 install',
    )
  }
  if (!pinnedNode()) {
    throw setUpError(
      `There is no pinned Node for ${process.platform} ${process.arch}. Tutti runs on Linux (x64, arm64) and on Macs with Apple silicon.`,
    )
  }
  mkdirSync(dirname(stamp), { recursive: true })
  writeFileSync(`${stamp}.${process.pid}`, wanted)
  renameSync(`${stamp}.${process.pid}`, stamp)
}

/** Changes whenever an install could change anything. */
function fingerprint() {
  const hash = createHash('sha256').update([process.platform, process.arch, root, ...PNPM].join('\n'))
  for (const path of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json', ...manifests()]) {
    hash.update(`\n${path}\n`).update(read(join(root, path)) ?? '')
  }
  return hash.digest('hex')
}

function manifests() {
  return ['packages', 'services'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .toSorted()
      .map((name) => join(folder, name, 'package.json')),
  )
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** @param {string} output */
function tail(output) {
  return output.trim().split('\n').slice(-15).join('\n')
}
