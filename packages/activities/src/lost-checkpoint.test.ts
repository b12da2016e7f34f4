import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mirrorRefs, TuttiError } from '@tutti/core'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { captureNow, createTestHost, runInside, type TestHost, type TestHostOptions } from './test-host.ts'
import type { HostSession } from './sessions.ts'

const never = new AbortController().signal
const files = { 'a.txt': 'a\n', 'b.txt': 'b\n', 'd/c.txt': 'c\n', '.gitignore': '*.local\n' }
/** Every path with its type, mode and content, and what git says of them. */
const look =
  'find . -path ./.git -prune -o -printf "%y %m %p %l\\n" | sort; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum; git status --porcelain; git log --format=%s; git stash list'

let host: TestHost
afterEach(async () => host?.remove())

/** An agent with three checkpoints and changes after them; each removes, changes and makes something. */
async function workOn(options: Partial<TestHostOptions> = {}) {
  host = await createTestHost({ files, ...options })
  const session = await host.provision(1)
  const work = [
    'echo 1 > a.txt; mkdir e; echo 1 > e/one; ln -s e/one link; echo 1 > x.local',
    'rm b.txt; echo 2 > e/one; chmod +x e/one; git add a.txt; git commit -qm mine; mkdir empty',
    'echo 3 > e/three; rm link; mkdir link; echo 3 > link/f; rm x.local; echo 3 > y.local; head -c 3000000 /dev/urandom > large',
  ]
  const commits: string[] = []
  for (const line of work) {
    await runInside(session, line)
    commits.push((await host.checkpoint(session)).commit)
  }
  await runInside(session, 'rm -r e; echo 4 > e; echo 4 >> link/f; git stash -q; git stash apply -q')
  await captureNow(session)
  const seen = await runInside(session, look)
  await expect.poll(() => session.mirror.isKept(session.baseCommit, never), { timeout: 20_000 }).toBe(true)
  const [recorded] = (await host.events('workspace_captured')).slice(-1)
  return { session, commits, seen, recorded: recorded!.manifestDigest }
}

const packsOf = (commit: string) => {
  const folder = join(host.folder, 'archive', 'commits', commit.slice(0, 2))
  return readdirSync(folder)
    .filter((name) => name.startsWith(commit))
    .map((name) => join(folder, name))
}
const objectOf = ({ mirror }: HostSession, revision: string) => {
  const id = execFileSync('git', ['rev-parse', revision], { cwd: mirror.path, encoding: 'utf8' }).trim()
  return join(mirror.path, 'objects', id.slice(0, 2), id.slice(2))
}
const damage = (path: string) => {
  const bytes = readFileSync(path)
  bytes[bytes.length >> 1]! ^= 0xff
  rmSync(path)
  writeFileSync(path, bytes)
}
const loseMirrors = () => rmSync(join(host.folder, 'mirrors'), { recursive: true })

describe('a checkpoint that is lost is passed over', { timeout: 120_000 }, () => {
  type Lose = (session: HostSession, commits: readonly string[]) => void
  const ways: readonly (readonly [string, Lose, number])[] = [
    [
      'neither the mirror nor the archive has it',
      (_session, [, , newest]) => {
        loseMirrors()
        for (const pack of packsOf(newest!)) rmSync(pack)
      },
      1,
    ],
    [
      'its pack in the archive is damaged',
      (_session, [, , newest]) => {
        loseMirrors()
        for (const pack of packsOf(newest!)) damage(pack)
      },
      1,
    ],
    [
      'the disk cannot read its pack in the archive any more',
      (_session, [, , newest]) => {
        loseMirrors()
        for (const pack of packsOf(newest!)) {
          rmSync(pack)
          // EIO, as from a bad sector.
          symlinkSync('/proc/self/mem', pack)
        }
      },
      1,
    ],
    [
      'what the one before it needs is damaged, so that both are lost',
      (_session, [, middle]) => {
        loseMirrors()
        for (const pack of packsOf(middle!)) damage(pack)
      },
      2,
    ],
    [
      'the mirror has one of its contents damaged, and the archive has it no more',
      (session, [, , newest]) => {
        damage(objectOf(session, `${newest}:large`))
        for (const pack of packsOf(newest!)) rmSync(pack)
      },
      1,
    ],
    [
      'its pack in the mirror is damaged, and the archive has it no more',
      (session, [, , newest]) => {
        const { path } = session.mirror
        const pack = execFileSync('git', ['pack-objects', '-q', 'objects/pack/pack'], {
          cwd: path,
          input: execFileSync(
            'git',
            ['rev-list', '--objects', '--no-object-names', `${newest}~..${newest}`],
            {
              cwd: path,
            },
          ),
          encoding: 'utf8',
        }).trim()
        execFileSync('git', ['prune-packed'], { cwd: path })
        damage(join(path, 'objects', 'pack', `pack-${pack}.pack`))
        for (const kept of packsOf(newest!)) rmSync(kept)
      },
      1,
    ],
    [
      'a folder of it is missing in the mirror, and its pack in the archive is damaged',
      (session, [, , newest]) => {
        rmSync(objectOf(session, `${newest}:link`))
        for (const pack of packsOf(newest!)) damage(pack)
      },
      1,
    ],
    [
      'all of them are lost',
      (_session, commits) => {
        loseMirrors()
        for (const commit of commits) for (const pack of packsOf(commit)) rmSync(pack)
      },
      3,
    ],
    [
      'none, when the archive has what is damaged in the mirror',
      (session, [, , newest]) => damage(objectOf(session, `${newest}:link/f`)),
      0,
    ],
  ]
  test.for(ways)('%s', async ([, lose, passedOver]) => {
    const { session, commits, seen, recorded } = await workOn()
    await host.lose(session)
    lose(session, commits)
    const next = await host.provision(2)
    expect(await runInside(next, look)).toBe(seen)
    const [recovery] = await host.events('recovery')
    expect(recovery).toMatchObject({
      commit: commits[2 - passedOver] ?? session.baseCommit,
      proven: true,
      manifestDigest: recorded,
      missing: [],
    })
    expect(recovery!.passedOver).toEqual(
      passedOver === 0 ? undefined : commits.toReversed().slice(0, passedOver),
    )

    // The newest checkpoint is whole again: the next recovery needs none of this.
    expect((await host.events('checkpoint')).length).toBe(passedOver === 0 ? 3 : 4)
    await runInside(next, 'echo 5 > five')
    await captureNow(next)
    const later = await runInside(next, look)
    await host.lose(next)
    loseMirrors()
    expect(await runInside(await host.provision(3), look)).toBe(later)
    const [, again] = await host.events('recovery')
    expect(again).toMatchObject({ commit: (await host.events('checkpoint')).at(-1)!.commit, proven: true })
    expect(again!.passedOver).toBeUndefined()
  })

  test('one that does not give what was recorded is passed over as well', async () => {
    const { session, commits, seen, recorded: manifestDigest } = await workOn()
    const { mirror, workspace, log } = session
    const changes = [{ path: Buffer.from('d/c.txt'), deleted: true } as const]
    const ref = mirrorRefs.checkpoint(host.bcId)
    const wrong = await mirror.commit(
      { parent: workspace.commit, changes, ref, message: 'm', atMs: 0 },
      never,
    )
    await log.write({
      type: 'checkpoint',
      incarnation: 1,
      turnId: '',
      ...wrong,
      filesChanged: 1,
      manifestDigest,
    })
    await log.flush()
    await host.lose(session)
    expect(await runInside(await host.provision(2), look)).toBe(seen)
    const [recovery] = await host.events('recovery')
    expect(recovery).toMatchObject({ commit: commits[2], passedOver: [wrong.commit], proven: true })
  })

  test('content of the later changes that is gone as well is data_loss, with the paths and the checkpoint', async () => {
    const { session, commits } = await workOn()
    await host.lose(session)
    loseMirrors()
    for (const pack of packsOf(commits[2]!)) rmSync(pack)
    const large = (await host.events('file_change')).find(({ path }) => path === 'large')!
    host.removeBlob(large.hash!)
    const failed = await host.provision(2).catch((error: unknown) => error)
    expect(failed).toMatchObject({ type: 'data_loss' })
    expect(String(failed)).toContain(`large (${large.hash})`)
    expect(String(failed)).toContain(commits[2])
    expect(await host.events('recovery')).toEqual([])
  })

  test('none is while the host lacks the space to look at it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tutti-git-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const [full, gitPath] = [join(folder, 'full'), join(folder, 'git')]
    const limit = `[ -e '${full}' ] && case " $* " in *" index-pack "*) trap '' XFSZ; ulimit -f 8;; esac`
    writeFileSync(gitPath, `#!/bin/sh\n${limit}\nexec git "$@"\n`, { mode: 0o755 })
    const { session, commits, seen } = await workOn({ gitPath })
    await host.lose(session)
    damage(objectOf(session, `${commits[2]}:large`))
    writeFileSync(full, '')
    await expect(host.provision(2)).rejects.toMatchObject({ type: 'boot_timeout' })
    rmSync(full)
    expect(await runInside(await host.provision(3), look)).toBe(seen)
    const [recovery] = await host.events('recovery')
    expect(recovery).toMatchObject({ commit: commits[2], proven: true })
    expect(recovery!.passedOver).toBeUndefined()
  })

  test('none is looked at when a boot fails for a store that does not answer', async () => {
    let isSilent = false
    const { session, commits } = await workOn({
      blobs: (real) => ({
        ...real,
        async *stream(...request) {
          if (isSilent) throw new TuttiError('unavailable', 'no answer')
          yield* real.stream(...request)
        },
      }),
    })
    await host.lose(session)
    isSilent = true
    const repair = vi.spyOn(host.deps.mirrors, 'repair')
    await expect(host.provision(2)).rejects.toMatchObject({ type: 'boot_timeout' })
    expect(repair).not.toHaveBeenCalled()
    isSilent = false
    await host.provision(3)
    expect(await host.events('recovery')).toMatchObject([{ commit: commits[2] }])
  })

  test('going back does not need the newest checkpoint either', async () => {
    const { session, commits, seen } = await workOn()
    const { last: at } = await host.store.eventLog.head(host.bcId, never)
    await runInside(session, 'rm -r d; echo 5 > e')
    const { commit } = await host.checkpoint(session)
    await host.lose(session)
    loseMirrors()
    for (const lost of [commits[2]!, commit]) for (const pack of packsOf(lost)) rmSync(pack)
    expect(await runInside(await host.provision(2, { requestId: 'r', at }), look)).toBe(seen)
    const [recovery] = await host.events('recovery')
    expect(recovery).toMatchObject({ requestId: 'r', commit: commits[1], proven: true })
    expect(recovery!.passedOver?.toSorted()).toEqual([commits[2]!, commit].toSorted())
  })
})
