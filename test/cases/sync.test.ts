import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { isRunning } from '@tutti/processes'
import {
  createTestRepository,
  createTuttiStack,
  type CliRun,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { startAgent, shellOutput, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { listFolder, listNow, type Listing } from './recovery-driver.ts'
import { killAll, sandboxesOf, signalAll } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')
const patience = { timeout: 30_000 }

describe.skipIf(!temporalPath)('a folder in step with an agent', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let folder: string

  beforeAll(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_MAX_SANDBOXES: '12', TUTTI_SANDBOX_FILE_SIZE: '1MiB' },
    })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({
      'kept.txt': 'k',
      'notes.md': 'first',
      'src/a.ts': 'a',
      'src/deep/b.ts': 'b',
      '.gitignore': 'node_modules/\n*.log\n',
    })
  })
  afterEach(() => rmSync(dirname(folder), { recursive: true, force: true }))
  afterAll(async () => {
    await stack?.remove()
    repository?.remove()
  })

  /** An agent at rest after these commands, and an empty folder. */
  async function begin(...commands: readonly string[]): Promise<AgentDriver> {
    folder = join(mkdtempSync(join(tmpdir(), 'tutti-sync-')), 'work')
    const agent = await startAgent(client, {
      prompt: run('true', ...commands),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    expect((await agent.rest()).state?.reason).toBe('completed')
    return agent
  }
  const run = (...commands: readonly string[]) => script('run: <<EOF', 'set -e', ...commands, 'EOF')
  async function work(agent: AgentDriver, ...commands: readonly string[]): Promise<void> {
    await agent.followUp(run(...commands))
    expect((await agent.rest()).state?.reason).toBe('completed')
  }
  const sync = (agent: AgentDriver, ...flags: readonly string[]): Promise<CliRun> =>
    stack.run(['sync', agent.bcId, folder, '--once', ...flags])
  async function synced(agent: AgentDriver, ...flags: readonly string[]): Promise<string[]> {
    const { code, stdout, stderr } = await sync(agent, ...flags)
    const lines = stdout.split('\n').filter((line) => line !== '')
    const isApart = lines.some((line) => line.startsWith('!'))
    expect([code, stderr]).toEqual(
      isApart ? [9, expect.stringMatching(/^Not in step: \d+ paths?;/)] : [0, 'In step.\n'],
    )
    return lines.toSorted()
  }
  const at = (...names: readonly string[]) => join(folder, ...names)
  const read = (name: string) => readFileSync(at(name), 'utf8')
  const write = (name: string, text: string) => {
    mkdirSync(join(at(name), '..'), { recursive: true })
    writeFileSync(at(name), text)
  }
  function local(): Listing {
    const own = Object.entries(listFolder(folder)).filter(([key]) => !key.startsWith('.tutti/'))
    return Object.fromEntries(own)
  }
  const said = async (agent: AgentDriver) =>
    (await agent.events()).map((event) => (event.type === 'text_delta' ? event.text : '')).join('')
  /** Contents that its sandbox had for a path, in their order; all are kept. */
  async function history(agent: AgentDriver, path: string): Promise<string[]> {
    const hashes = (await agent.events()).flatMap((event) =>
      event.type === 'file_change' && event.path === path && event.hash ? [event.hash] : [],
    )
    const read = async (hash: string) => {
      const content = client.blobs.read(hash as `sha256_${string}`, new AbortController().signal)
      return Buffer.concat(await Array.fromAsync(content)).toString()
    }
    return Promise.all(hashes.map(read))
  }
  const fileEvents = async (agent: AgentDriver) =>
    (await agent.events()).filter(({ type }) => type === 'file_change' || type === 'file_sync').length

  test('comes into step, follows what the agent does while nobody looks and its sandbox is gone, and brings edits back', async () => {
    const agent = await begin(
      'printf "#!/bin/sh\\n" > run.sh; chmod +x run.sh; ln -s notes.md link; mkdir empty; printf "\\377" > odd',
    )
    expect(await synced(agent)).toHaveLength(9)
    expect(local()).toEqual(await listNow(agent))
    expect(await synced(agent)).toEqual([])

    await work(
      agent,
      'echo more >> notes.md; rm src/a.ts; rmdir empty; mkdir -p x/y; echo 1 > x/y/z; rm link; mkdir link; echo 2 > link/in',
    )
    killAll(sandboxesOf(stack).flat())
    await synced(agent)
    expect(read('notes.md')).toBe('firstmore\n')
    expect(existsSync(at('src/a.ts'))).toBe(false)
    expect(read('link/in')).toBe('2\n')

    // There is no sandbox: the next one gets it, and the agent hears of it.
    write('notes.md', 'mine')
    write('new/mine.txt', 'new')
    unlinkSync(at('kept.txt'))
    renameSync(at('run.sh'), at('ran.sh'))
    symlinkSync('notes.md', at('mylink'))
    expect(await synced(agent)).toEqual(
      ['kept.txt', 'mylink', 'new/mine.txt', 'notes.md', 'ran.sh', 'run.sh'].map((name) => `→ ${name}`),
    )
    const before = await fileEvents(agent)
    await agent.followUp(script('echo-context:', 'run: cat notes.md'))
    expect((await agent.rest()).state?.reason).toBe('completed')
    expect(await said(agent)).toContain('The user has changed files of the workspace: "kept.txt"')
    expect(shellOutput(await agent.events()).endsWith('mine')).toBe(true)
    expect(local()).toEqual(await listNow(agent))
    expect(await fileEvents(agent)).toBe(before)
    expect(await synced(agent)).toEqual([])
  })

  test('SBX-07 the user’s edit is accepted, and the agent writes by the older version: the user’s stands on both sides, the agent’s is kept and announced, no echo follows; Foo.ts is no foo.ts', async () => {
    const agent = await begin('printf foo > foo.ts')
    const staying = stack.cli(['sync', agent.bcId, folder, '--ignore-case'])
    await expect.poll(() => existsSync(at('foo.ts')) && existsSync(at('src/deep/b.ts')), patience).toBe(true)

    // A program of the agent's that is about to write, and a sandbox that hears nothing of the user's edit until it has.
    const writer = 'trap "printf theirs > notes.md; printf Foo > Foo.ts; exit" USR1; echo about to'
    await agent.followUp(script(`run: exec sh -c '${writer}; while :; do sleep 0.05; done' writer`))
    await expect.poll(async () => shellOutput(await agent.events()), patience).toContain('about to')
    const writers = () => sandboxesOf(stack).filter((lines) => lines.some(isWriter))
    const isWriter = (line: string) => line.endsWith(' writer ')
    const others = writers()
      .flat()
      .filter((line) => !isWriter(line) && !/ sleep /.test(line))
    signalAll(others, 'SIGSTOP')
    write('notes.md', 'mine')
    await agent.seen((event) => event.type === 'file_sync' && event.path === 'notes.md')
    signalAll(writers().flat().filter(isWriter), 'SIGUSR1')
    await expect.poll(writers, patience).toEqual([])
    signalAll(others, 'SIGCONT')
    await agent.seen((event) => event.type === 'ack')
    expect((await agent.rest()).state?.reason).toBe('completed')
    const order = (await agent.events()).flatMap((event) => {
      if (event.type === 'ack') return ['ack']
      const isOne = event.type === 'file_sync' || event.type === 'file_change'
      return isOne && event.path === 'notes.md' ? [event.type] : []
    })
    expect(order).toEqual(['file_sync', 'file_change', 'ack'])
    expect(await history(agent, 'notes.md')).toEqual(['theirs'])

    await agent.followUp(script('echo-context:', 'run: cat notes.md'))
    await agent.rest()
    expect(await said(agent)).toContain('The user has changed files of the workspace: "notes.md"')
    expect(shellOutput(await agent.events()).endsWith('mine')).toBe(true)
    const before = await fileEvents(agent)
    await new Promise((resolve) => setTimeout(resolve, 10_000))
    expect(await fileEvents(agent)).toBe(before)
    expect([read('notes.md'), read('foo.ts'), existsSync(at('Foo.ts'))]).toEqual(['mine', 'foo', false])
    staying.process.kill('SIGINT')
    const { stdout } = await staying.done
    expect(stdout.split('\n').filter((line) => /^[!→]/.test(line))).toEqual([
      '→ notes.md',
      '! Foo.ts: its name is that of foo.ts on a disk that ignores case; have one of them renamed',
    ])
  })

  test('SBX-07 the agent’s write is in the log first: the user’s stands too, and the sync says so', async () => {
    const agent = await begin()
    await synced(agent, '--ignore-case')
    await work(agent, 'printf theirs > notes.md; mkdir SRC; printf s > SRC/c.ts')
    write('notes.md', 'mine')
    expect(await synced(agent, '--ignore-case')).toEqual([
      '! SRC/c.ts: its name is that of src on a disk that ignores case; have one of them renamed',
      expect.stringMatching(
        /^→ {2}yours is kept: notes\.md: the agent's version stays in its history as sha256_/,
      ),
    ])
    await agent.seen((event) => event.type === 'ack')
    expect(await history(agent, 'notes.md')).toEqual(['theirs'])
    const before = await fileEvents(agent)
    await agent.followUp(script('echo-context:', 'run: cat notes.md'))
    await agent.rest()
    expect(await said(agent)).toContain('The user has changed files of the workspace: "notes.md"')
    expect(shellOutput(await agent.events()).endsWith('mine')).toBe(true)
    expect(await synced(agent, '--ignore-case')).toHaveLength(1)
    expect(await fileEvents(agent)).toBe(before)
    expect(read('notes.md')).toBe('mine')
  })

  test('a file of the user’s that differs from what was agreed is never deleted or overwritten', async () => {
    const agent = await begin()
    await synced(agent)
    write('src/a.ts', 'mine')
    write('src/deep/only.txt', 'mine too')
    await work(agent, 'rm -r src; echo flat > src; printf same > both.txt')
    write('both.txt', 'same')
    expect((await synced(agent)).filter((line) => line.startsWith('!'))).toEqual([])
    // The folder of the user's is there, and their file in it: the agent's file of that name is in the way, and gives way.
    expect(read('src/a.ts')).toBe('mine')
    expect(read('src/deep/only.txt')).toBe('mine too')
    expect(existsSync(at('src/deep/b.ts'))).toBe(false)
    await synced(agent)
    expect(local()).toEqual(await listNow(agent))
  })

  test('a file in the place of a folder, and a folder in that of a file, take one run, both ways', async () => {
    const agent = await begin('mkdir -p d/e; echo 1 > d/e/f; echo 1 > d/g; echo 1 > flat')
    await synced(agent)
    await work(agent, 'rm -r d flat; echo file > d; mkdir flat; echo in > flat/in')
    expect(await synced(agent)).toEqual(
      ['← d', '← flat/in', '←  deleted d/e/f', '←  deleted d/g', '←  deleted flat'].toSorted(),
    )
    expect([read('d'), read('flat/in')]).toEqual(['file\n', 'in\n'])

    rmSync(at('d'))
    rmSync(at('flat'), { recursive: true })
    write('d/x', 'mine')
    write('flat', 'mine too')
    expect(await synced(agent)).toEqual(['→ d', '→ d/x', '→ flat', '→ flat/in'])
    await work(agent, 'cat d/x flat')
    expect(shellOutput(await agent.events()).endsWith('minemine too')).toBe(true)
    expect(await synced(agent)).toEqual([])
    expect(local()).toEqual(await listNow(agent))
  })

  test('the user’s own file in the place of a folder that the agent made, and of one that it left, are in step after one run', async () => {
    const agent = await begin('echo 1 > one; mkdir two; echo 2 > two/in')
    await synced(agent)
    await work(agent, 'rm one; mkdir one; echo in > one/in; rm -r two; echo 2 > two')
    killAll(sandboxesOf(stack).flat())
    write('one', 'mine')
    write('two/mine', 'mine')
    const told = await synced(agent)
    expect(told.filter((line) => line.startsWith('!'))).toEqual([])
    expect([read('one'), read('two/mine'), existsSync(at('two/in'))]).toEqual(['mine', 'mine', false])
    expect(await synced(agent)).toEqual([])
    expect(local()).toEqual(await listNow(agent))
  })

  test('nothing leaves the folder, goes into a repository of the user’s, or comes out of what its rules ignore', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'tutti-outside-'))
    const agent = await begin('mkdir .tutti; echo x > .tutti/sync.sqlite')
    mkdirSync(folder)
    execFileSync('git', ['init', '-q'], { cwd: folder })
    const head = readFileSync(at('.git/HEAD'), 'utf8')
    expect((await synced(agent)).filter((line) => line.startsWith('!'))).toEqual([
      '! .tutti/sync.sqlite: the name is taken by the state of the sync; rename it where it comes from',
    ])
    write('node_modules/p/index.js', '1')
    write('debug.log', 'l')
    rmSync(at('src'), { recursive: true })
    symlinkSync(outside, at('src'))
    await work(agent, 'echo 2 > src/a.ts; echo new > src/new.ts')
    await synced(agent)
    expect(readdirSync(outside)).toEqual([])
    expect(readlinkSync(at('src'))).toBe(outside)
    expect(readFileSync(at('.git/HEAD'), 'utf8')).toBe(head)
    await synced(agent)
    const there = await listNow(agent)
    expect(there['src']).toBe(`link ${outside}`)
    expect(Object.keys(there).filter((key) => /node_modules|\.log/.test(key))).toEqual([])
    rmSync(outside, { recursive: true })
  })

  test('what newer rules leave out stays in the folder, with the edits of the user, and with what else is in there', async () => {
    const agent = await begin(
      'echo token > .env; mkdir build db; echo n > build/notes.md; echo o > db/.env.old',
    )
    await synced(agent)
    await work(agent, 'printf ".env*\nbuild/\n" >> .gitignore')
    expect(await synced(agent)).toEqual(['← .gitignore'])
    expect([read('.env'), read('build/notes.md'), read('db/.env.old')]).toEqual(['token\n', 'n\n', 'o\n'])
    expect(await synced(agent)).toEqual([])
    write('.env', 'mine')
    expect(await synced(agent)).toEqual(['→ .env'])
    await work(agent, 'cat .env; echo theirs > .env')
    expect(shellOutput(await agent.events())).toContain('mine')
    expect(await synced(agent)).toEqual([])
    expect(read('.env')).toBe('mine')
  })

  test('a file that the sandbox cannot have is told with what to do, stays in the folder, and holds up nothing', async () => {
    const agent = await begin()
    await synced(agent)
    const large = 'l'.repeat(2_000_000)
    write('a-large', large)
    write('notes.md', 'mine')
    await synced(agent)
    await agent.seen((event) => event.type === 'file_sync_failed')
    await agent.seen((event) => event.type === 'ack')
    const told =
      "! a-large: the agent's sandbox cannot have it (EFBIG). It is larger than a file may be in a sandbox (sandbox.file_size): make it smaller, or give agents more."
    // Each run tells it, as it stays away.
    for (const _ of [1, 2]) expect(await synced(agent)).toEqual([told])
    expect((await stack.run(['agent', 'events', agent.bcId])).stdout).toContain('a-large  (EFBIG)')
    killAll(sandboxesOf(stack).flat())
    await work(agent, 'cat notes.md; test ! -e a-large; echo new > new.txt')
    expect(shellOutput(await agent.events()).endsWith('mine')).toBe(true)
    expect((await synced(agent)).toSorted()).toEqual([told, '← new.txt'])
    expect([read('a-large'), read('new.txt')]).toEqual([large, 'new\n'])
    write('a-large', 'small')
    await synced(agent)
    await work(agent, 'cat a-large')
    expect(shellOutput(await agent.events()).endsWith('small')).toBe(true)
    expect(await synced(agent)).toEqual([])
    expect(local()).toEqual(await listNow(agent))
  })

  test('a recovery by hand tells which edits it could not place, as the sync does', async () => {
    const agent = await begin()
    await synced(agent)
    const { offset } = await agent.waitFor((event) => event.type === 'turn_ended')
    killAll(sandboxesOf(stack).flat())
    write('a-large', 'l'.repeat(2_000_000))
    write('notes.md', 'mine')
    await synced(agent)
    const why =
      /^! a-large: the agent's sandbox cannot have it \(EFBIG\)\. It is larger than a file may be .*$/m
    const { code, stdout } = await stack.run(['agent', 'recover', agent.bcId, '--at', offset])
    expect([code, stdout]).toEqual([0, expect.stringMatching(why)])
    expect(stdout).not.toContain('notes.md')
    const again = ['agent', 'recover', agent.bcId, '--idempotency-key', 'once']
    const unplaced = [expect.objectContaining({ path: btoa('a-large'), code: 'EFBIG' })]
    for (const _ of [1, 2]) expect(await stack.json(again)).toMatchObject({ incarnation: 3, unplaced })
    expect((await sync(agent)).stdout).toMatch(why)
    await work(agent, 'cat notes.md')
    expect(shellOutput(await agent.events()).endsWith('mine')).toBe(true)
  })

  test('a folder that something is in, that another agent has, that another sync has, or that was emptied is refused', async () => {
    const agent = await begin('for i in $(seq 30); do echo $i > many$i; done')
    write('mine', 'm')
    const full = await sync(agent)
    expect([full.code, full.stderr]).toEqual([1, expect.stringContaining('Something is in')])
    expect(full.stderr).toMatch(/\nnext: the same command with a new or an empty folder$/m)
    expect(readdirSync(folder)).toEqual(['mine'])
    const inFile = await stack.run(['sync', agent.bcId, at('mine'), '--once'])
    expect([inFile.code, inFile.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^error\[failed_precondition\]: .* cannot be used: EEXIST.*\nnext: make it a folder /,
      ),
    ])
    unlinkSync(at('mine'))
    await synced(agent)

    const other = await startAgent(client, {
      prompt: run('true'),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await other.rest()
    const theirs = await sync(other)
    expect([theirs.code, theirs.stderr]).toEqual([1, expect.stringContaining(`in step with ${agent.bcId}`)])

    const staying = stack.cli(['sync', agent.bcId, folder])
    write('mine', 'm')
    await agent.seen((event) => event.type === 'file_sync' && event.path === 'mine')
    const second = await sync(agent)
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('Another sync has the folder')])
    staying.process.kill('SIGINT')
    expect((await staying.done).code).toBe(2)

    for (const name of readdirSync(folder)) if (name.startsWith('many')) unlinkSync(at(name))
    const before = await fileEvents(agent)
    const emptied = await sync(agent)
    expect([emptied.code, emptied.stderr]).toEqual([1, expect.stringContaining('--allow-deletions')])
    expect(emptied.stderr).toMatch(/^next: put them back, or the same command with --allow-deletions$/m)
    expect(await fileEvents(agent)).toBe(before)
    await synced(agent, '--allow-deletions')
    expect(local()).toEqual(await listNow(agent))
  })

  test('one that stays brings both ways as it happens, and is not missed when it ends', async () => {
    const agent = await begin()
    const staying = stack.cli(['sync', agent.bcId, folder])
    const until = async (isSo: () => boolean) => {
      while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await until(() => existsSync(at('src/deep/b.ts')))
    await agent.followUp(
      script('run: echo 1 > one', 'run: until [ -e go ]; do sleep 0.1; done', 'run: cat go'),
    )
    await until(() => existsSync(at('one')))
    // In the middle of a tool call.
    write('go', 'on')
    expect((await agent.rest()).state?.reason).toBe('completed')
    expect(shellOutput(await agent.events()).endsWith('on')).toBe(true)
    staying.process.kill('SIGTERM')
    await staying.done
    await work(agent, 'echo 2 > two')
    expect(existsSync(at('two'))).toBe(false)
    await synced(agent)
    expect(read('two')).toBe('2\n')
  })

  test('one in the background outlives the command, and ends when it is told to', async () => {
    const agent = await begin()
    const { code, stderr } = await stack.run(['sync', agent.bcId, folder, '--background'])
    expect(code).toBe(0)
    const pid = Number(/Process (\d+) stays on/.exec(stderr)?.[1])
    try {
      expect(read('notes.md')).toBe('first')
      write('notes.md', 'mine')
      await agent.seen((event) => event.type === 'ack')
    } finally {
      process.kill(pid)
    }
    while (isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 50))
    expect(readFileSync(at('.tutti/sync.log'), 'utf8')).toBe(
      '→ notes.md\nIn step; what changes on either side follows.\n',
    )
  })

  test('a sync that is killed at any moment leaves no half of a file, and the next one goes on', async () => {
    const agent = await begin(
      'mkdir many; for i in $(seq 400); do head -c 3000 /dev/zero | tr "\\0" "$((i % 10))" > many/$i; done',
    )
    const kill = async (afterMs: number) => {
      const running = stack.cli(['sync', agent.bcId, folder, '--once'])
      const timer = setTimeout(() => running.process.kill('SIGKILL'), afterMs)
      const { code } = await running.done
      clearTimeout(timer)
      return code
    }
    let isWhole = false
    for (let round = 0; !isWhole && round < 4; round += 1) {
      isWhole = (await kill(700 + 200 * round)) === 0
      if (!existsSync(at('many'))) continue
      for (const name of readdirSync(at('many'))) {
        expect(lstatSync(at('many', name)).size).toBe(3000)
        if (round === 2) write(`many/${name}`, 'm'.repeat(3000))
      }
    }
    await synced(agent)
    await synced(agent)
    expect(local()).toEqual(await listNow(agent))
  })
})
