import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TuttiError, settings } from '@tutti/core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadConfig } from './load-config.ts'

let root: string
let project: string
let userFile: string
let env: Record<string, string>

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tutti-config-'))
  project = join(root, 'project')
  mkdirSync(join(project, '.git'), { recursive: true })
  mkdirSync(join(project, 'deep', 'er'), { recursive: true })
  mkdirSync(join(root, 'config', 'tutti'), { recursive: true })
  userFile = join(root, 'config', 'tutti', 'config.toml')
  env = { HOME: root, XDG_CONFIG_HOME: join(root, 'config') }
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const load = (flags: Parameters<typeof loadConfig>[0]['flags'] = {}) =>
  loadConfig({ flags, env, cwd: join(project, 'deep', 'er') })

const failure = (work: () => unknown): TuttiError => {
  try {
    work()
  } catch (error) {
    if (error instanceof TuttiError) return error
    throw error
  }
  throw new Error('it was accepted')
}

describe('where a setting comes from', () => {
  test('flag > environment > project > user > default', () => {
    expect(load().origins['sandbox.pids']).toEqual({ origin: 'default', detail: '' })
    expect(load().values['sandbox.pids']).toBe(settings['sandbox.pids'].default)

    writeFileSync(userFile, '[sandbox]\npids = 10\n')
    expect(load().values['sandbox.pids']).toBe(10)
    expect(load().origins['sandbox.pids']).toEqual({ origin: 'user', detail: `${userFile}:2` })

    writeFileSync(join(project, 'tutti.toml'), 'sandbox.pids = 20\n')
    expect(load().values['sandbox.pids']).toBe(20)
    expect(load().origins['sandbox.pids']).toEqual({
      origin: 'project',
      detail: `${join(project, 'tutti.toml')}:1`,
    })

    env['TUTTI_SANDBOX_PIDS'] = '30'
    expect(load().values['sandbox.pids']).toBe(30)
    expect(load().origins['sandbox.pids']).toEqual({ origin: 'environment', detail: 'TUTTI_SANDBOX_PIDS' })

    const loaded = load({ 'sandbox.pids': { value: '40', flag: '--pids' } })
    expect(loaded.values['sandbox.pids']).toBe(40)
    expect(loaded.origins['sandbox.pids']).toEqual({ origin: 'flag', detail: '--pids' })
  })

  test('units in text, and numbers in the setting’s own unit', () => {
    writeFileSync(
      userFile,
      '[sandbox]\nmemory = "1GiB"\ncpu = "150%"\n[turn]\ntimeout = "10m"\nstall_timeout = 5000\n',
    )
    const { values } = load()
    expect(values['sandbox.memory']).toBe(1024 ** 3)
    expect(values['sandbox.cpu']).toBe(150)
    expect(values['turn.timeout']).toBe(600_000)
    expect(values['turn.stall_timeout']).toBe(5000)
  })

  test('the project file is not looked for beyond the repository', () => {
    writeFileSync(join(root, 'tutti.toml'), 'sandbox.pids = 99\n')
    expect(load().origins['sandbox.pids'].origin).toBe('default')
  })

  test('the data folder is absolute, by default below the user’s data folder', () => {
    expect(load().values['data.dir']).toBe(
      join(root, process.platform === 'darwin' ? 'Library/Application Support' : '.local/share', 'tutti'),
    )
    expect(load({ 'data.dir': { value: 'x', flag: '--data-dir' } }).values['data.dir']).toBe(
      join(project, 'deep', 'er', 'x'),
    )
  })
})

describe('what is refused', () => {
  test('an unknown key, with file, line and a hint', () => {
    writeFileSync(userFile, '# mine\n[sandbox]\nmemoy = "1GiB"\n')
    const error = failure(load)
    expect(error.code).toBe('invalid_argument')
    expect(error.message).toContain(
      `${userFile}:3: sandbox.memoy is not a setting. Did you mean sandbox.memory?`,
    )
  })

  test('a syntax error, with file and line', () => {
    writeFileSync(userFile, '[sandbox]\npids = = 1\n')
    expect(failure(load).message).toContain(`${userFile}:2:`)
  })

  test.each([
    ['TUTTI_SANDBOX_PIDS', 'many'],
    ['TUTTI_TURN_TIMEOUT', 'soon'],
    ['TUTTI_PORT', '70000'],
    ['TUTTI_STRATEGY', 'guess'],
    ['LOG_LEVEL', 'loud'],
    ['TUTTI_AGENTS', '51'],
  ])('%s=%s, with the variable', (variable, value) => {
    env[variable] = value
    const error = failure(load)
    expect(error.code).toBe('invalid_argument')
    expect(error.message).toContain(variable)
  })

  test.each([
    'server.address = "http://evil.example"',
    'data.dir = "/tmp/x"',
    'server.api_keys = "known"',
    'sandboxes.engine = "./engine.sock"',
    'sandboxes.pull = "missing"',
  ])('a project that sets %s', (line) => {
    writeFileSync(join(project, 'tutti.toml'), `${line}\n`)
    expect(failure(load).message).toContain('may not be set by a project')
  })
})
