import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { processesMarked } from '@tutti/processes'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestBench, never, recordCapture, shell, type TestBench } from './test-sandbox.ts'

describe.each(['bubblewrap', 'none'] as const)('agent server, isolation %s', (isolation) => {
  let bench: TestBench
  beforeAll(async () => {
    bench = await createTestBench()
  })
  afterAll(async () => {
    await bench.dispose()
  })

  test('hydrates, runs a program and captures what it changed', async () => {
    const { server, sandbox } = await bench.start({ policy: { isolation } })
    const base = await server.hydrate(
      { commit: bench.commit, branch: 'work', changes: [], contentOf: () => [] as never },
      never,
    )
    expect(base.entries).toBe(1)

    const run = await shell(
      server,
      'cat README.md; echo new > new.txt; rm README.md; git status --short; echo e >&2',
    )
    expect(run).toMatchObject({ code: 0, stderr: 'e\n', stdout: 'hello\n D README.md\n?? new.txt\n' })

    const recorded = recordCapture()
    const summary = await server.capture(recorded.sink, never)
    expect(recorded.changes.map((change) => change.action)).toEqual(['deleted', 'created'])
    expect([...recorded.contents.values()].map(String)).toEqual(['new\n'])
    expect(summary).toMatchObject({ entries: 1, changes: 2 })
    expect(await server.capture(recordCapture().sink, never)).toEqual({ ...summary, changes: 0 })
    await server.close()
    await bench.provider.destroy(sandbox.ref, never)
    expect(await bench.provider.list(undefined, never)).toEqual([])
  })
  test('hydrates a commit that came as a pack, with changes after it; what is mounted does not have it', async () => {
    const { commit, pack } = packCommit(bench, 12 << 20)
    const { server, sandbox } = await bench.start({ policy: { isolation } })
    const late = Buffer.from('late\n')
    const change = await captureOf(bench, isolation, 'echo late > late.txt')
    const summary = await server.hydrate(
      {
        commit,
        branch: 'work',
        pack: inPieces(pack),
        changes: change,
        async *contentOf() {
          yield late
        },
      },
      never,
    )
    expect(summary.entries).toBe(3)
    const run = await shell(
      server,
      'cat late.txt; git log --format=%s; git status --short; wc -c < large; cat .git/objects/info/alternates',
    )
    expect(run.stdout.split('\n').slice(0, 5)).toEqual([
      'late',
      'on top',
      'base',
      '?? late.txt',
      `${12 << 20}`,
    ])
    const mounted = run.stdout.trimEnd().split('\n').at(-1)!
    const probe = `git init -q --bare x && echo '${mounted}' > x/objects/info/alternates && git -C x cat-file -e`
    expect(await shell(server, `${probe} ${bench.commit}`)).toMatchObject({ code: 0 })
    expect((await shell(server, `git -C x cat-file -e ${commit}`)).code).not.toBe(0)
    await server.close()
    await bench.provider.destroy(sandbox.ref, never)
  })

  test('a pack that is cut off, damaged or fails is said, a git that is killed too, and the sandbox can be hydrated again', async () => {
    const { commit, pack } = packCommit(bench, 3 << 20)
    const { server, sandbox } = await bench.start({ policy: { isolation } })
    const hydrate = (pieces: AsyncIterable<Uint8Array>) =>
      server.hydrate(
        { commit, branch: 'work', pack: pieces, changes: [], contentOf: () => [] as never },
        never,
      )
    await expect(hydrate(inPieces(pack.subarray(0, 1 << 20)))).rejects.toMatchObject({
      message: expect.stringContaining('index-pack') as string,
    })
    const damaged = Buffer.from(pack)
    damaged.fill(0, 1000, 2000)
    await expect(hydrate(inPieces(damaged))).rejects.toMatchObject({
      message: expect.stringContaining('index-pack') as string,
    })
    async function* failing() {
      yield pack.subarray(0, 100)
      throw new Error('the mirror is gone')
    }
    await expect(hydrate(failing())).rejects.toThrow('the mirror is gone')
    async function* killing() {
      yield pack.subarray(0, 100)
      const find = () =>
        processesMarked(`TUTTI_SANDBOX_ID=${sandbox.ref.id}`).filter((pid) =>
          readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0index-pack\0'),
        )
      await expect.poll(find, { timeout: 10_000 }).not.toEqual([])
      for (const pid of find()) process.kill(pid, 'SIGKILL')
      yield pack.subarray(100)
    }
    await expect(hydrate(killing())).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringContaining('index-pack failed in the sandbox: ended by SIGKILL') as string,
    })
    expect((await hydrate(inPieces(pack))).entries).toBe(2)
    await server.close()
    await bench.provider.destroy(sandbox.ref, never)
  })

  test('a pack is taken no faster than the sandbox reads it', async () => {
    const { server, sandbox } = await bench.start({ policy: { isolation } })
    let taken = 0
    async function* endless() {
      for (;;) {
        taken += 64 << 10
        yield Buffer.alloc(64 << 10, 'no pack')
      }
    }
    const { commit } = bench
    const request = { commit, branch: 'work', pack: endless(), changes: [], contentOf: () => [] as never }
    await expect(server.hydrate(request, never)).rejects.toMatchObject({ code: 'failed_precondition' })
    expect(taken).toBeLessThan(8 << 20)
    await server.close()
    await bench.provider.destroy(sandbox.ref, never)
  })
})

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 100_000) yield bytes.subarray(start, start + 100_000)
}

let packed = 0

/** A commit on the bench's own that the mounted objects do not have, as a pack. */
function packCommit(bench: TestBench, bytes: number): { commit: string; pack: Buffer } {
  packed += 1
  const other = join(bench.folder, `other-${packed}`)
  const git = (input: string, ...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], {
      cwd: other,
      input,
      maxBuffer: 64 << 20,
    })
  mkdirSync(other)
  git('', 'clone', '-q', join(bench.folder, 'mirror.git'), '.')
  writeFileSync(join(other, 'large'), randomBytes(bytes))
  git('', 'add', '-A')
  git('', 'commit', '-q', '-m', 'on top')
  const commit = git('', 'rev-parse', 'HEAD').toString().trim()
  return { commit, pack: git(`${commit}\n^${bench.commit}\n`, 'pack-objects', '-q', '--revs', '--stdout') }
}

async function captureOf(bench: TestBench, isolation: 'bubblewrap' | 'none', line: string) {
  const { server, sandbox } = await bench.start({ policy: { isolation } })
  await server.hydrate(
    { commit: bench.commit, branch: 'work', changes: [], contentOf: () => [] as never },
    never,
  )
  await shell(server, line)
  const recorded = recordCapture()
  await server.capture(recorded.sink, never)
  await server.close()
  await bench.provider.destroy(sandbox.ref, never)
  return recorded.changes
}
