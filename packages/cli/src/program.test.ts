import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { settings, systemClock } from '@tutti/core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CliDeps } from './deps.ts'
import { buildProgram } from './program.ts'
import { runCli } from './run-cli.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-program-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

interface Said {
  code: number
  stdout: string
  stderr: string
}

function createDeps(env: Record<string, string> = {}): { deps: CliDeps; said: Said } {
  const said: Said = { code: 0, stdout: '', stderr: '' }
  const stream = (name: 'stdout' | 'stderr') => ({
    write: (text: string | Uint8Array) => void (said[name] += String(text)),
    isTTY: false,
    columns: 100,
    rows: 40,
  })
  const deps: CliDeps = {
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    readStdin: async () => 'from standard input',
    env: { HOME: folder, PATH: process.env['PATH'], ...env },
    cwd: folder,
    clock: systemClock,
    onSignal: () => () => {},
    exitNow: (code) => {
      throw new Error(`exit ${code}`)
    },
    setExitCode: (code) => (said.code = code),
    loadParts: async () => {
      throw new Error('no command here starts a server')
    },
  }
  return { deps, said }
}

async function run(...argv: string[]): Promise<Said> {
  const { deps, said } = createDeps()
  await runCli(argv, deps)
  return said
}

function* commands(command: Command, path: readonly string[] = []): Generator<[string, Command]> {
  for (const child of command.commands) {
    const full = [...path, child.name()]
    yield [full.join(' '), child]
    yield* commands(child, full)
  }
}

const all = [...commands(buildProgram(createDeps().deps))]

describe('help', () => {
  test('the commands are those that the design names', () => {
    expect(all.map(([path]) => path)).toMatchInlineSnapshot(`
      [
        "run",
        "demo",
        "dev",
        "serve",
        "serve api",
        "serve worker",
        "agent",
        "agent create",
        "agent list",
        "agent get",
        "agent send",
        "agent answer",
        "agent stop",
        "agent pause",
        "agent resume",
        "agent archive",
        "agent diff",
        "agent events",
        "agent deliver",
        "agent workspace",
        "agent recover",
        "sync",
        "ensemble",
        "ensemble list",
        "ensemble get",
        "ensemble watch",
        "ensemble stop",
        "pr",
        "pr list",
        "pr show",
        "repo",
        "repo add",
        "repo list",
        "config",
        "config list",
        "doctor",
        "gc",
        "admin",
        "admin rebuild",
        "admin crash-points",
      ]
    `)
  })

  test.each(all.filter(([, command]) => command.commands.length === 0).map(([path]) => [path]))(
    '%s --help has examples that are about it, on stdout, with exit code 0',
    async (path) => {
      const { code, stdout, stderr } = await run(...path.split(' '), '--help')
      expect(code).toBe(0)
      expect(stderr).toBe('')
      expect(stdout).toMatch(/^Usage: tutti /)
      expect(stdout.split('Examples:')[1]).toContain(`tutti ${path}`)
      expect(stdout).toContain('--data-dir')
    },
  )
})

test.each([[[]], [['agent']], [['help']], [['help', 'agent']]])(
  '%j prints help on stdout and nothing else',
  async (argv) => {
    const { code, stdout, stderr } = await run(...argv)
    expect(stdout).toMatch(/^Usage: tutti/)
    expect(stderr).toBe('')
    // A script that left out the command has done nothing.
    expect(code).toBe(argv[0] === 'help' ? 0 : 64)
  },
)

describe('errors say what happened and what to run next', () => {
  test.each([
    [['agent', 'list'], 69, /error\[unavailable\]: No Tutti server.*\nnext: tutti dev --data-dir/],
    [['--address', 'http://127.0.0.1:9', 'agent', 'list'], 69, /error\[unavailable\].*\nnext: tutti dev/],
    [['agent', 'lst'], 64, /error\[invalid_argument\]: unknown command 'lst'/],
    [
      ['agent', 'get'],
      64,
      /error\[invalid_argument\]: missing required argument 'id'\nnext: tutti agent get --help/,
    ],
    [['run', 'x', '--repo', '.', '--agents', '0'], 64, /--agents.*from 1 to 50.*\nnext: tutti run --help/],
    [['run', 'x', '--repo', '.', '--strategy', 'guess'], 64, /error\[invalid_argument\]/],
    [['run', 'x', '--repo', '.', '--child-timeout', 'soon'], 64, /--child-timeout/],
    [['run', '-f', 'missing.yaml'], 64, /\/missing\.yaml does not exist.*--file\.\nnext: tutti run --help/],
    [['run', '-f', '.'], 64, /is a folder.*--file/],
    [['run', '-f', '/dev/zero'], 64, /\/dev\/zero is larger than 1 MiB/],
    [['run', 'x', '--repo', '.', '--env', 'NOT_SET'], 64, /--env NOT_SET: .* is not set here.*NOT_SET=VALUE/],
    [['serve', 'worker', '--max-sandboxes', '1001'], 64, /--max-sandboxes.*from 1 to 1000/],
    [['agent', 'send', 'bc-1', ' '], 64, /The message is empty/],
    [['help', 'nope'], 64, /error\[invalid_argument\]: unknown command 'nope'\nnext: tutti --help/],
    [['agent', 'help', 'nope'], 64, /unknown command 'nope'\nnext: tutti agent --help/],
    [['run', 'x'], 64, /--repo/],
    [['-o', 'xml', 'agent', 'list'], 64, /error\[invalid_argument\]/],
  ])('%j', async (argv, code, words) => {
    const said = await run(...argv)
    expect(said.stderr).toMatch(words)
    expect(said.stdout).toBe('')
    expect(said.code).toBe(code)
  })
})

describe('commands that need no server', () => {
  test('config list --show-origin has every setting', async () => {
    const { deps, said } = createDeps({ TUTTI_SANDBOX_PIDS: '7', TUTTI_API_KEYS: 'hidden' })
    await runCli(['config', 'list', '--show-origin'], deps)
    for (const name of Object.keys(settings)) expect(said.stdout).toContain(name)
    expect(said.stdout).toMatch(/sandbox\.pids +7 +environment TUTTI_SANDBOX_PIDS/)
    expect(said.stdout).not.toContain('hidden')
  })

  test('admin crash-points as JSON lines', async () => {
    const { stdout } = await run('admin', 'crash-points', '-o', 'jsonl')
    const rows = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { name: string })
    expect(rows.map(({ name }) => name)).toContain('turn.checkpoint')
  })

  test('--version', async () => {
    expect((await run('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})
