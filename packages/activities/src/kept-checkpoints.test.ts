import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { createTestHost, captureNow, runInside, type TestHost } from './test-host.ts'

const never = new AbortController().signal
const files = { 'a.txt': 'a\n', 'b.txt': 'b\n' }
let host: TestHost
afterEach(async () => host?.remove())

const loseMirrorsAndSource = ({ folder }: TestHost) => {
  for (const name of ['mirrors', 'source']) rmSync(join(folder, name), { recursive: true })
}
const look =
  'find . -path ./.git -prune -o -type f -print | sort | xargs tail -n +1; git status --porcelain; git log --format=%H'

test(
  'REC an agent goes on where neither the mirror nor the source is there any more',
  { timeout: 60_000 },
  async () => {
    host = await createTestHost({ files })
    const first = await host.provision(1)
    await runInside(first, 'echo changed > a.txt; rm b.txt; mkdir d; echo new > d/new')
    await host.checkpoint(first)
    await runInside(
      first,
      'git checkout -q -b mine && git add -A && git commit -q -m mine && echo dirty >> d/new',
    )
    await host.checkpoint(first)
    await runInside(first, 'echo after the checkpoint > late.txt')
    await captureNow(first)
    await vi.waitFor(
      async () => expect(await first.mirror.isKept(first.baseCommit, never)).toBe(true),
      20_000,
    )
    const before = await runInside(first, look)
    await host.lose(first)
    loseMirrorsAndSource(host)

    const second = await host.provisionElsewhere(2)
    expect(await runInside(second, look)).toBe(before)
    await runInside(second, 'git commit -q --allow-empty -m more && echo more > more.txt && git fsck --full')
    const { commit } = await host.checkpoint(second)
    expect(second.baseCommit).toBe(first.baseCommit)
    const [, recovery] = await host.events('recovery', 'checkpoint')
    expect(recovery).toBeDefined()
    await host.lose(second)
    rmSync(join(host.folder, 'mirrors'), { recursive: true })
    const third = await host.provision(3)
    expect(await runInside(third, 'cat more.txt late.txt')).toBe('more\nafter the checkpoint')
    expect(third.workspace.commit).toBe(commit)
  },
)

test(
  'a checkpoint does not wait for its base, and claims only what is kept',
  { timeout: 60_000 },
  async () => {
    const stored = Promise.withResolvers<void>()
    host = await createTestHost({
      files,
      archive: (real) => ({
        ...real,
        async put(name, bytes, signal) {
          if (name.endsWith('.base.pack')) await stored.promise
          await real.put(name, bytes, signal)
        },
      }),
    })
    const session = await host.provision(1)
    await runInside(session, 'echo one > a.txt')
    await host.checkpoint(session)
    stored.resolve()
    await vi.waitFor(
      async () => expect(await session.mirror.isKept(session.baseCommit, never)).toBe(true),
      20_000,
    )
    await runInside(session, 'echo two > a.txt')
    await host.checkpoint(session)
    expect((await host.events('checkpoint')).map(({ kept }) => kept)).toEqual([undefined, true])
  },
)
