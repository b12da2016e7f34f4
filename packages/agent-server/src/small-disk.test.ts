import { createHash } from 'node:crypto'
import { describeLocalSandbox } from '@tutti/sandbox'
import { changedFile, changePath, pathKey } from '@tutti/workspace'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AgentServer } from './port.ts'
import { createTestBench, never, recordCapture, shell, testPolicy, type TestBench } from './test-sandbox.ts'

describe('SEC-06 a disk that is full', { timeout: 60_000 }, () => {
  let bench: TestBench
  beforeAll(async () => {
    bench = await createTestBench()
    // Where the kernel does not hold a disk to its limit, a full one ends its sandbox.
    expect(await describeLocalSandbox({ root: join(bench.folder, 'probe') })).toMatchObject({ disk: 'mount' })
  })
  afterAll(() => bench.dispose())

  async function start(limits: Partial<typeof testPolicy.limits>): Promise<AgentServer> {
    const { server } = await bench.start({ policy: { limits: { ...testPolicy.limits, ...limits } } })
    const request = { commit: bench.commit, branch: 'agent/work', changes: [], contentOf: () => [] as never }
    await server.hydrate(request, never)
    return server
  }
  async function captured(server: AgentServer) {
    const { sink, changes, contents, skipped, packs } = recordCapture()
    await server.capture(sink, never)
    const files = changes.flatMap((change) => {
      const file = changedFile(change)
      if (!file) return []
      const bytes = contents.get(file.hash)!
      expect(`sha256_${createHash('sha256').update(bytes).digest('hex')}`).toBe(file.hash)
      return [[pathKey(changePath(change)), bytes.length] as const]
    })
    return { files: Object.fromEntries(files), skipped, packs }
  }

  test('is captured as any other, its large files too', async () => {
    const server = await start({ diskBytes: 24 << 20 })
    await shell(
      server,
      `head -c 15000000 /dev/urandom > large; echo 1 > small; echo '*.log' > .gitignore; echo > a.log; head -c 90000000 /dev/zero > rest`,
    )
    const { files, skipped } = await captured(server)
    expect(files).toMatchObject({ large: 15_000_000, small: 2, '.gitignore': 6 })
    expect(files['rest']).toBeGreaterThan(1_000_000)
    expect(skipped).toEqual([])
    // The same bytes again are nothing new, others are.
    await shell(server, 'touch large; printf x | dd of=rest conv=notrunc 2>&1')
    expect(Object.keys((await captured(server)).files)).toEqual(['rest'])
  })

  test('keeps what is committed from being captured, which is told, until it has room', async () => {
    const server = await start({ diskBytes: 24 << 20 })
    await shell(
      server,
      'echo 1 > small; git add small; git commit -qm small; head -c 90000000 /dev/zero > rest',
    )
    const full = await captured(server)
    expect(Object.keys(full.files)).toEqual(['rest', 'small'])
    expect(full.skipped).toEqual([{ path: '.git', reason: 'limit' }])
    expect(full.packs).toEqual([])
    await shell(server, 'rm rest')
    const { packs } = await captured(server)
    expect(packs.map(({ report }) => report.commits.map(({ message }) => message))).toEqual([['small']])
  })

  test.each([
    ['space', { diskBytes: 24 << 20 }, 'head -c 90000000 /dev/zero > rest', 'disk'],
    ['files', { files: 500 }, 'seq 1000 | xargs touch', 'files'],
  ])(
    'without %s, what is written into it fails with the name of the limit',
    async (_, limits, line, limit) => {
      const server = await start(limits)
      await shell(server, line)
      await expect(server.writeFile('folder/new', Buffer.alloc(1 << 20), never)).rejects.toMatchObject({
        code: 'resource_exhausted',
        detail: { reason: 'resource_limit', limit },
      })
    },
  )
})
