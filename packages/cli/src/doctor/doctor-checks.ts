import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { TuttiError } from '@tutti/core'
import { withProbeRoot } from '@tutti/sandbox'
import { findTemporalServer } from '@tutti/temporal-binary'
import type { ResolvedConfig } from '../config/load-config.ts'
import type { CliContext } from '../context.ts'
import { checkStatusName } from '../output/enum-name.ts'
import { sandboxCheck } from './sandbox-check.ts'

export interface DoctorCheckResult {
  readonly name: string
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  /** What was found, one line. */
  readonly found: string
  /** Where it came from; empty when there is nothing to say. */
  readonly origin: string
  /** What to do about it; empty when nothing. */
  readonly fix: string
}

const run = promisify(execFile)

/**
 * Everything that can be tried from here, and on top of it what the running server says about itself: it knows its own stores,
 * limiter and forge, and its words replace ours where both looked.
 */
export async function doctorChecks(context: CliContext): Promise<DoctorCheckResult[]> {
  const local = await Promise.all([
    node(),
    git(),
    temporal(context),
    sandbox(context),
    stores(context),
    forge(),
    configuration(context),
    dataFolder(context),
  ])
  const { server, checks } = await fromServer(context)
  const merged = new Map([...local, server, ...checks].map((check) => [check.name, check]))
  return [...merged.values()]
}

const check = (
  name: string,
  status: DoctorCheckResult['status'],
  found: string,
  rest: { readonly origin?: string; readonly fix?: string } = {},
): DoctorCheckResult => ({ name, status, found, origin: rest.origin ?? '', fix: rest.fix ?? '' })

async function node(): Promise<DoctorCheckResult> {
  const enough = Number(process.versions.node.split('.')[0]) >= 24
  return check('node', enough ? 'ok' : 'failed', `Node ${process.versions.node}`, {
    origin: process.execPath,
    fix: enough
      ? ''
      : 'Run Tutti by "npx tutti" in its checkout, which brings its own Node, or install Node 24 or newer.',
  })
}

const oldestGit = [2, 38]

async function git(): Promise<DoctorCheckResult> {
  const fix = 'Install git 2.38 or newer (Debian and Ubuntu: sudo apt-get install git).'
  try {
    const { stdout } = await run('git', ['--version'])
    const [major = 0, minor = 0] = (/\d+\.\d+/.exec(stdout)?.[0] ?? '').split('.').map(Number)
    const enough = major > oldestGit[0]! || (major === oldestGit[0] && minor >= oldestGit[1]!)
    return check('git', enough ? 'ok' : 'failed', stdout.trim(), { fix: enough ? '' : fix })
  } catch {
    return check('git', 'failed', 'not found', { fix })
  }
}

async function temporal({ deps, signal }: CliContext): Promise<DoctorCheckResult> {
  const found = await findTemporalServer({ env: { ...deps.env }, install: false, signal })
  if (found.kind === 'missing') {
    const [first = '', ...rest] = found.message.split('\n')
    return check('temporal', 'warning', first, {
      fix: `The first "tutti dev" or "npm run demo" downloads it. ${rest.at(-1) ?? ''}`.trim(),
    })
  }
  if (found.kind === 'binary')
    return check('temporal', 'ok', `${found.version}, ${found.path}`, { origin: found.source })
  return check('temporal', 'ok', `running cluster at ${found.address}`, {
    origin: found.source,
    fix: 'Not ours: a development server is 2 to 8 times as fast with --dynamic-config-value history.transferProcessorMaxPollRPS=1000.',
  })
}

async function sandbox(context: CliContext): Promise<DoctorCheckResult> {
  let config: ResolvedConfig
  try {
    config = context.config().values
  } catch {
    return check('sandbox', 'skipped', 'the settings cannot be read')
  }
  return withProbeRoot((root) => sandboxCheck(root, config, context.deps.env))
}

async function stores(context: CliContext): Promise<DoctorCheckResult> {
  const database = new DatabaseSync(':memory:')
  try {
    const row = database.prepare('SELECT sqlite_version() AS version').get() as { version: string }
    const folder = String(context.config().values['data.dir'])
    return check('stores', 'ok', `SQLite ${row.version} and files in ${folder}`, { origin: 'default' })
  } catch (error) {
    return check('stores', 'skipped', TuttiError.from(error).message)
  } finally {
    database.close()
  }
}

const forge = async (): Promise<DoctorCheckResult> =>
  check('forge', 'ok', 'local: a branch in the repository itself, the pull request in the catalog', {
    origin: 'default',
  })

async function configuration(context: CliContext): Promise<DoctorCheckResult> {
  try {
    const { origins } = context.config()
    const set = Object.values(origins).filter(({ origin }) => origin !== 'default')
    const files = new Set(
      set
        .filter(({ origin }) => origin === 'project' || origin === 'user')
        .map(({ detail }) => detail.replace(/:\d+$/, '')),
    )
    return check('config', 'ok', `${set.length === 1 ? '1 setting' : `${set.length} settings`} changed`, {
      origin: [...files].join(', '),
    })
  } catch (error) {
    return check('config', 'failed', TuttiError.from(error).message, {
      fix: 'Mend that line; "tutti config list" checks it again.',
    })
  }
}

/** Temporal's database, the catalog and a few captures of a middling repository. */
const leastFreeMB = 500

async function dataFolder(context: CliContext): Promise<DoctorCheckResult> {
  let path: string
  let origin: string
  try {
    const { values, origins } = context.config()
    path = String(values['data.dir'])
    origin = origins['data.dir'].origin
  } catch {
    return check('data', 'skipped', 'the settings cannot be read')
  }
  let existing = path
  while (!existsSync(existing)) existing = dirname(existing)
  try {
    accessSync(existing, constants.W_OK)
    const found = existing === path ? path : `${path} (made by the first start)`
    const { bavail, bsize } = statfsSync(existing)
    const freeMB = Math.floor((bavail * bsize) / 1e6)
    if (freeMB >= leastFreeMB) return check('data', 'ok', found, { origin })
    return check('data', 'warning', `${found}, ${freeMB} MB free`, {
      origin,
      fix: `Make room on its disk, or choose another folder with --data-dir: below ${leastFreeMB} MB agents and Temporal soon fail.`,
    })
  } catch {
    return check('data', 'failed', `${path} cannot be written`, {
      origin,
      fix: 'Choose another folder with --data-dir.',
    })
  }
}

async function fromServer(
  context: CliContext,
): Promise<{ server: DoctorCheckResult; checks: DoctorCheckResult[] }> {
  try {
    const client = await context.tryConnect()
    if (!client) {
      return { server: check('server', 'skipped', 'none is up; "tutti run" starts its own', {}), checks: [] }
    }
    const answer = await client.system.doctor({}, { signal: context.signal })
    const checks = answer.checks.map((one) =>
      check(one.name, checkStatusName(one.status) as DoctorCheckResult['status'], one.found, {
        origin: one.origin,
        fix: one.fix,
      }),
    )
    const version = answer.system?.version ?? ''
    return {
      server: check('server', 'ok', `${client.address} ${version}`.trim(), {
        origin: answer.system?.mode ?? '',
      }),
      checks,
    }
  } catch (error) {
    const { message } = TuttiError.from(error)
    return { server: check('server', 'failed', message, { fix: 'Start it again: tutti dev' }), checks: [] }
  }
}
