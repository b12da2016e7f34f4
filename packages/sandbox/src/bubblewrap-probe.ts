import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { TuttiError } from '@tutti/core'
import { bubblewrapProfile } from './bubblewrap-profile.ts'
import { seccompFilter } from './seccomp-filter.ts'

export type BubblewrapSupport =
  | {
      readonly works: true
      readonly path: string
      readonly version: string
      readonly disableUserNamespaces: boolean
    }
  | { readonly works: false; readonly problem: string; readonly remedy: string }

/** Run inside: nothing outside may be writable, and no network interface but loopback may be there. */
const check = [
  'touch /usr/tutti-probe 2>/dev/null && exit 11',
  'touch /tutti-probe 2>/dev/null && exit 12',
  '[ "$(grep -c : /proc/net/dev)" -le 1 ] || exit 13',
  'touch /tmp/tutti-probe || exit 14',
  '[ -w /proc/sys/kernel/core_pattern ] && exit 15',
  'exit 0',
].join('; ')

const filter = seccompFilter()

/** Whether bubblewrap isolates here, found by doing it. */
export async function probeBubblewrap(path = 'bwrap'): Promise<BubblewrapSupport> {
  if (process.platform !== 'linux') {
    return {
      works: false,
      problem: `bubblewrap needs Linux; this is ${process.platform}`,
      remedy:
        'run the worker on Linux, or ask for no isolation with --isolation none (then agents can do what you can do)',
    }
  }
  const version = await run(path, ['--version'])
  if (version.code !== 0) {
    return {
      works: false,
      problem: 'bubblewrap (bwrap) is not installed',
      remedy: `install it: ${installCommand()}`,
    }
  }
  let problem = ''
  for (const disableUserNamespaces of [true, false]) {
    const args = bubblewrapProfile({
      shareNetwork: false,
      readOnly: [],
      cwd: '/tmp',
      env: { PATH: '/usr/bin:/bin' },
      disableUserNamespaces,
    })
    const filtered = filter ? ['--seccomp', '3'] : []
    const result = await run(path, [...args, ...filtered, '--', '/bin/sh', '-c', check], filter)
    if (result.code === 0) {
      return {
        works: true,
        path,
        version: version.output.trim().replace(/^bubblewrap /, ''),
        disableUserNamespaces,
      }
    }
    problem = result.output.trim() || `its self-check ended with ${result.code}`
  }
  return {
    works: false,
    problem: `bubblewrap does not isolate here: ${problem.slice(0, 500)}`,
    remedy:
      'allow unprivileged user namespaces (on Ubuntu: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an ' +
      'AppArmor profile for bwrap; in a container: run it with the namespaces allowed)',
  }
}

export function refuseIsolation(support: BubblewrapSupport & { works: false }): TuttiError {
  return new TuttiError(
    'failed_precondition',
    `Isolation was asked for and is not to be had: ${support.problem}. To mend it: ${support.remedy}.`,
    { isolation: 'bubblewrap', reason: 'isolation_unavailable' },
  )
}

const installers: readonly (readonly [RegExp, string])[] = [
  [/debian|ubuntu/, 'sudo apt-get install bubblewrap'],
  [/fedora|rhel|centos/, 'sudo dnf install bubblewrap'],
  [/arch/, 'sudo pacman -S bubblewrap'],
  [/alpine/, 'sudo apk add bubblewrap'],
  [/suse/, 'sudo zypper install bubblewrap'],
]

function installCommand(): string {
  let release = ''
  try {
    release = readFileSync('/etc/os-release', 'utf8')
  } catch {
    // No such file: the general words below.
  }
  const ids = [...release.matchAll(/^ID(?:_LIKE)?=(.*)$/gm)].map((match) => match[1]).join(' ')
  return installers.find(([pattern]) => pattern.test(ids))?.[1] ?? 'the package is called bubblewrap'
}

/** @param input written to descriptor 3 */
function run(
  program: string,
  args: readonly string[],
  input?: Uint8Array,
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe', input ? 'pipe' : 'ignore'],
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
      timeout: 10_000,
      killSignal: 'SIGKILL',
    })
    let output = ''
    const descriptor = child.stdio[3] as Writable | null
    descriptor?.on('error', () => {})
    descriptor?.end(input)
    child.stdout!.on('data', (chunk: Buffer) => (output += chunk))
    child.stderr!.on('data', (chunk: Buffer) => (output += chunk))
    child.once('error', (error) => resolve({ code: null, output: error.message }))
    child.once('close', (code) => resolve({ code, output }))
  })
}
