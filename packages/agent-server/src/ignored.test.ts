import { writeFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { join } from 'node:path'
import { changedFile, changePath } from '@tutti/workspace'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { divideIgnored } from './inside/ignored-policy.ts'
import type { AgentServer } from './port.ts'
import { createTestBench, never, recordCapture, shell, type TestBench } from './test-sandbox.ts'

const mebi = 1n << 20n
const policy = { files: 'small', envFiles: false } as const

describe('which ignored files are kept', () => {
  const kept = (files: Record<string, bigint>, was: readonly string[] = []) => [
    ...divideIgnored(new Map(Object.entries(files)), (key) => was.includes(key), policy),
  ]

  test('those up to 1 MiB', () => {
    expect(kept({ a: mebi, b: mebi + 1n, c: 0n })).toEqual(['a', 'c'])
  })

  test('64 MiB in all: those that were kept before, then in the order of their paths', () => {
    const files = Object.fromEntries(Array.from({ length: 70 }, (_, at) => [`f${at + 10}`, mebi]))
    expect(kept(files)).toHaveLength(64)
    expect(kept(files, ['f79', 'f78'])).toEqual(expect.arrayContaining(['f79', 'f78', 'f10', 'f71']))
    expect(kept(files, ['f79', 'f78'])).not.toContain('f72')
  })

  test.each([
    ['.env', false],
    ['sub/.env.local', false],
    ['.envrc', false],
    ['.env.example', true],
    ['.environment', true],
    ['x.env', true],
  ])('%s holds no secret: %s', (name, is) => {
    expect(kept({ [name]: 1n })).toEqual(is ? [name] : [])
    const all = { files: 'all', envFiles: true } as const
    expect([...divideIgnored(new Map([[name, 1n]]), () => false, all)]).toEqual([name])
    expect([...divideIgnored(new Map([[name, 1n]]), () => false, { ...all, files: 'none' })]).toEqual([])
  })
})

describe('ignored files in a workspace', { timeout: 60_000 }, () => {
  let bench: TestBench
  beforeAll(async () => {
    bench = await createTestBench((folder) => {
      writeFileSync(join(folder, '.gitignore'), '*.local\ncache/\nnode_modules/\nmany/\n.env*\n')
    })
  })
  afterAll(() => bench.dispose())

  async function captured(server: AgentServer) {
    const recorded = recordCapture()
    await server.capture(recorded.sink, never)
    const found = recorded.changes.map((change) => {
      const isIgnored = change.action === 'deleted' ? change.ignored : changedFile(change)?.ignored
      const mark = change.action === 'deleted' ? (isIgnored ? '~' : '-') : isIgnored ? 'i' : '+'
      return `${mark} ${Buffer.from(changePath(change)).toString()}`
    })
    return { recorded, found, skipped: recorded.skipped.map(({ path, reason }) => `${path} ${reason}`) }
  }
  async function start(): Promise<AgentServer> {
    const { server } = await bench.start()
    await server.hydrate(
      { commit: bench.commit, branch: 'b', changes: [], contentOf: () => Readable.from([]) },
      never,
    )
    return server
  }

  test('what is not kept among them is told of, unless it lies in a folder that is left out', async () => {
    const server = await start()
    await shell(
      server,
      'mkdir -p cache/run cache/dist; mkfifo cache/run/pipe cache/dist/pipe; echo d > cache/dist/d; git init -q cache/dep; echo x > cache/dep/x',
    )
    const { found, skipped } = await captured(server)
    expect(found).toEqual(['i cache/dep/x', '+ cache/run'])
    expect(skipped).toEqual(['cache/dep/.git repository', 'cache/dist/ ignored', 'cache/run/pipe special'])
    expect(await captured(server)).toMatchObject({ found: [], skipped: [] })
    await server.close()
  })

  test('folders with nothing in them are kept, but for those that are made again', async () => {
    const server = await start()
    await shell(server, 'mkdir -p cache/a/b cache/dist/c node_modules/d')
    const { found, skipped } = await captured(server)
    expect(found).toEqual(['+ cache/a/b'])
    expect(skipped).toEqual(['cache/dist/ ignored', 'node_modules/ ignored'])
    expect(await captured(server)).toMatchObject({ found: [], skipped: [] })
    await server.close()
  })

  test('are captured with their mark, or told of by path: a folder that is made again as a whole', async () => {
    const server = await start()
    await shell(
      server,
      'echo 1 > dev.local; echo s > .env; mkdir cache node_modules many; echo 1 > cache/small; head -c 5000000 /dev/zero > cache/big; echo 1 > node_modules/x; for i in $(seq 120); do head -c 1100000 /dev/zero > many/$i; done',
    )
    const { found, skipped, recorded } = await captured(server)
    expect(found).toEqual(['i cache/small', 'i dev.local'])
    expect(skipped).toEqual(['.env ignored', 'cache/big ignored', 'many/ ignored', 'node_modules/ ignored'])
    expect(await captured(server)).toMatchObject({ found: [], skipped: [] })

    const { server: next } = await bench.start()
    await next.hydrate(
      {
        commit: bench.commit,
        branch: 'b',
        changes: recorded.changes,
        contentOf: (hash) => Readable.from([recorded.contents.get(hash)!]),
      },
      never,
    )
    expect(await captured(next)).toMatchObject({ found: [], skipped: [] })
    expect((await shell(next, 'cat dev.local cache/small; git status --porcelain')).stdout).toBe('1\n1\n')
    await shell(next, 'rm dev.local; head -c 2000000 /dev/zero > cache/small')
    expect(await captured(next)).toMatchObject({
      found: ['+ cache', '~ cache/small', '- dev.local'],
      skipped: ['cache/small ignored'],
    })
    await server.close()
    await next.close()
  })

  test('what newer rules or its size leave out is no more kept, and not said to be gone', async () => {
    const server = await start()
    await shell(server, 'mkdir lib lib/build; for name in a b lib/build/c lib/d db; do echo 1 > $name; done')
    expect((await captured(server)).found).toEqual(['+ a', '+ b', '+ db', '+ lib/build/c', '+ lib/d'])
    await shell(server, 'printf "a\nbuild/\ndb\n" > .gitignore; head -c 1200000 /dev/zero > db; rm b')
    const { found, skipped } = await captured(server)
    expect(found).toEqual(['+ .gitignore', 'i a', '- b', '~ db', '~ lib/build/c'])
    expect(skipped).toEqual(['db ignored', 'lib/build/ ignored'])
    expect(await captured(server)).toMatchObject({ found: [], skipped: [] })
    await server.close()
  })

  test('a folder with very many is told of as one', async () => {
    const server = await start()
    await shell(server, 'mkdir cache; cd cache; seq 2100 | while read i; do echo $i > $i; done')
    expect(await captured(server)).toMatchObject({ found: [], skipped: ['cache/ ignored'] })
    await server.close()
  })

  test('what is tracked in a folder that is made again is captured', async () => {
    const server = await start()
    await shell(
      server,
      'mkdir node_modules; echo 1 > node_modules/x; git add -f node_modules/x; echo 1 > node_modules/y',
    )
    expect((await captured(server)).found).toEqual(['+ node_modules/x'])
    await shell(server, 'head -c 100 /dev/urandom > .git/index')
    expect((await captured(server)).found).toEqual([])
    await server.close()
  })
})
