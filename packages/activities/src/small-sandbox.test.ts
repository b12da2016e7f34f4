import { execFileSync } from 'node:child_process'
import type { SandboxProvider } from '@tutti/sandbox'
import { afterEach, describe, expect, test } from 'vitest'
import type { HostSession } from './sessions.ts'
import { captureNow, createTestHost, runInside, type TestHost, type TestHostOptions } from './test-host.ts'

const limits = { diskBytes: 24 << 20 }
const random = (mib: number, file: string) => `head -c ${mib << 20} /dev/urandom > ${file}`

let host: TestHost
const start = async (options: Partial<TestHostOptions> = {}) => {
  host = await createTestHost({ files: { x: 'x' }, limits, ...options })
  return host.provision(1)
}
afterEach(() => host.remove())

/** Every file's bytes, and what git says. */
const look = (session: HostSession) =>
  runInside(
    session,
    'find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum; git status --porcelain=v2 --branch; git log --all --format="%H %s"; git ls-files -s | sha256sum; sha256sum .git/hooks/* || true',
  )
/** Commits that a recovery has in many files, as each capture brings its own; the agent has made one pack of them, and removed ours. */
const makePacks = async (session: HostSession) => {
  for (let commit = 1; commit <= 20; commit += 1) {
    await runInside(session, `echo ${commit} > mine; git add mine; git commit -qm ${commit}`)
    await captureNow(session)
  }
  await runInside(session, 'git repack -adq; rm -rf ~/.tutti/repository/objects/??')
}
/** How each boot of the sandbox ended, and the disk that it was given beyond what was asked for. */
const boots = async (incarnation: number) => {
  const events = (await host.events('sandbox')).filter((event) => event.incarnation === incarnation)
  const details = (state: string) =>
    events.filter((event) => event.state === state).map(({ detail = '' }) => detail)
  return { created: details('creating'), failed: details('destroyed') }
}

describe('a workspace that takes more than half of its disk comes back', { timeout: 120_000 }, () => {
  const full = /^Boot 1 of 3 failed\. (?:The disk of the sandbox is full|git index-pack needs a larger file)/
  const larger = (room: string, setting: string, size: string) =>
    `with room for ${room}: the workspace and its commits need more than ${setting}, ${size}`

  test.each<[string, Partial<TestHostOptions>, (session: HostSession) => Promise<unknown>, string[]]>([
    [
      'after a checkpoint',
      {},
      async (session) => {
        await runInside(session, random(18, 'large'))
        await host.checkpoint(session)
      },
      ['48 MiB', 'sandbox.disk', '24 MiB'],
    ],
    [
      'with changes after the checkpoint',
      {},
      async (session) => {
        await runInside(session, `${random(10, 'one')}; ${random(4, 'two')}`)
        await host.checkpoint(session)
        await runInside(session, `${random(6, 'two')}; ${random(4, 'three')}; echo new > x`)
        await captureNow(session)
      },
      ['48 MiB', 'sandbox.disk', '24 MiB'],
    ],
    [
      'with commits and staged files of its own',
      {},
      async (session) => {
        await runInside(
          session,
          `${random(4, 'mine')}; git add mine; git commit -qm mine; git checkout -qb other`,
        )
        await runInside(session, `${random(1, 'staged')}; git add staged`)
        await captureNow(session)
        await runInside(session, random(10, 'large'))
        await host.checkpoint(session)
      },
      ['48 MiB', 'sandbox.disk', '24 MiB'],
    ],
    [
      'with so much beside its commits that only a part of its repository would fit',
      {},
      async (session) => {
        await runInside(session, 'mkdir .git/hooks; head -c 1000000 /dev/urandom > .git/hooks/large')
        await captureNow(session)
        await runInside(
          session,
          'rm -rf ~/.tutti/repository/objects/??; free=$(df --output=avail -B1 . | tail -1); head -c $((free - 400000)) /dev/zero > fill',
        )
        await captureNow(session)
      },
      ['48 MiB', 'sandbox.disk', '24 MiB'],
    ],
    [
      'with more than the largest file may have',
      { limits: { fileBytes: 8 << 20 } },
      async (session) => {
        await runInside(session, `${random(6, 'one')}; ${random(6, 'two')}`)
        await host.checkpoint(session)
      },
      ['256 MiB', 'sandbox.file_size', '8 MiB'],
    ],
    [
      'with as many files as there can be',
      { limits: { files: 500 } },
      async (session) => {
        await makePacks(session)
        await runInside(session, 'seq 1000 | xargs touch 2> /dev/null || true')
        await host.checkpoint(session)
      },
      ['1000 files', 'sandbox.files', '500 files'],
    ],
    [
      'with room for its files alone, and a setup command from which they are kept aside',
      { setupCommand: 'true' },
      async (session) => {
        await runInside(session, random(18, 'large'))
        await captureNow(session)
      },
      ['48 MiB', 'sandbox.disk', '24 MiB'],
    ],
  ])('%s, and once more', async (_what, options, work, [room, setting, size]) => {
    let session = await start(options)
    await work(session)
    const before = await look(session)
    for (const incarnation of [2, 3]) {
      await host.lose(session)
      session = await host.provision(incarnation)
      expect(await look(session)).toBe(before)
      // Each time from what was asked for.
      expect(await boots(incarnation)).toEqual({
        created: ['', larger(room!, setting!, size!)],
        failed: [expect.stringMatching(full)],
      })
      await captureNow(session)
    }
    const recoveries = await host.events('recovery')
    expect(recoveries).toMatchObject([
      { proven: true, missing: [] },
      { proven: true, missing: [] },
    ])
  })

  test.each(['disk', 'files'] as const)('where nothing but a look holds it to its %s', async (limit) => {
    const own = { disk: { diskBytes: 24 << 20 }, files: { files: 500 } }[limit]
    const session = await start({ disk: 'watchdog', limits: own })
    if (limit === 'files') await makePacks(session)
    await runInside(
      session,
      limit === 'disk' ? random(18, 'large') : 'seq $((480 - $(find . ~ | wc -l))) | xargs touch',
    )
    await host.checkpoint(session)
    const before = await look(session)
    await host.lose(session)
    expect(await look(await host.provision(2))).toBe(before)
    expect(await boots(2)).toEqual({
      created: ['', expect.stringContaining(`more than sandbox.${limit}`)],
      failed: [expect.stringMatching(/limit/)],
    })
  })

  test('where nothing but a look holds it to its disk, and a setup command has files kept aside', async () => {
    const session = await start({ disk: 'watchdog', setupCommand: 'true' })
    await runInside(session, random(18, 'large'))
    await captureNow(session)
    const before = await look(session)
    await host.lose(session)
    expect(await look(await host.provision(2))).toBe(before)
    expect(await boots(2)).toEqual({
      created: ['', expect.stringContaining('more than sandbox.disk')],
      failed: [expect.stringMatching(/limit/)],
    })
  })

  test('whose setup command has the room that it had the first time', async () => {
    const setupCommand = 'head -c 24000000 /dev/zero > made'
    const session = await start({ setupCommand, limits: { diskBytes: 48 << 20 } })
    await runInside(session, random(12, 'large'))
    await host.checkpoint(session)
    const before = await look(session)
    await host.lose(session)
    expect(await look(await host.provision(2))).toBe(before)
    expect(await boots(2)).toEqual({
      created: ['', expect.stringContaining('more than sandbox.disk')],
      failed: [
        expect.stringMatching(/The setup command ended with exit code 1\.\n.*No space left on device/),
      ],
    })
  })

  test('with room for each version of a file only once, however many checkpoints have one', async () => {
    const session = await start()
    for (let round = 0; round < 5; round += 1) {
      await runInside(session, random(8, 'large'))
      await host.checkpoint(session)
    }
    const before = await look(session)
    await host.lose(session)
    expect(await look(await host.provision(2))).toBe(before)
    expect(await boots(2)).toEqual({ created: [''], failed: [] })
  })
})

describe('a disk that stays too small', { timeout: 120_000 }, () => {
  test('for a recovery: the failure names the setting and the way to the files', async () => {
    let small = false
    const sandboxes = (real: SandboxProvider): SandboxProvider => ({
      ...real,
      create({ policy, ...spec }, signal) {
        const { diskBytes } = policy.limits
        const own = { ...policy.limits, diskBytes: small ? diskBytes / 8 : diskBytes }
        return real.create({ ...spec, policy: { ...policy, limits: own } }, signal)
      },
    })
    const session = await start({ sandboxes })
    await runInside(session, random(18, 'large'))
    await host.checkpoint(session)
    await host.lose(session)
    small = true
    const failed = await host.provision(2).catch((thrown: unknown) => thrown)
    expect(failed).toMatchObject({
      type: 'resource_limit',
      nonRetryable: true,
      message: expect.stringMatching(
        /sandbox\.disk is 24 MiB, and 96 MiB were too small.*larger sandbox\.disk.*`tutti agent workspace bc-\S+ --to DIR`/,
      ),
    })
    expect((await boots(2)).failed).toHaveLength(3)
    // Nothing is lost by it.
    small = false
    await host.provision(3)
  })

  test('where it is the host’s that is full: no larger one is asked for', async () => {
    const sandboxes = (real: SandboxProvider): SandboxProvider => ({
      ...real,
      async create({ policy, ...spec }, signal) {
        const small = { ...policy.limits, diskBytes: 8 << 20 }
        const sandbox = await real.create({ ...spec, policy: { ...policy, limits: small } }, signal)
        return { ...sandbox, hasOwnDisk: false, limitHit: () => undefined }
      },
    })
    const prepare = (folder: string) => void execFileSync('sh', ['-c', random(16, 'large')], { cwd: folder })
    const failed = await start({ prepare, sandboxes }).catch((thrown: unknown) => thrown)
    const message = 'The disk of the host is full. Make room where sandboxes are, then try again.'
    expect(failed).toMatchObject({ type: 'boot_timeout', message })
    expect((await boots(1)).created).toEqual(['', '', ''])
  })

  // Of the smaller one git leaves a part of the file, and some room.
  test.each([24, 8])('for the repository, %i MiB: nobody gets more than was asked for', async (size) => {
    const prepare = (folder: string) =>
      void execFileSync('sh', ['-c', random(size + 8, 'large')], { cwd: folder })
    const failed = await start({ prepare, limits: { diskBytes: size << 20 } }).catch(
      (thrown: unknown) => thrown,
    )
    const message = `The workspace does not fit into its sandbox: sandbox.disk is ${size} MiB. Start with a larger sandbox.disk.`
    expect(failed).toMatchObject({ type: 'resource_limit', message })
    expect(await boots(1)).toMatchObject({
      created: [''],
      failed: [expect.stringContaining('disk of the sandbox is full')],
    })
  })

  test('for the setup command of a first one: it gets no other one', async () => {
    const setupCommand = 'head -c 90000000 /dev/zero > rest'
    await expect(start({ setupCommand })).rejects.toMatchObject({ type: 'setup_failed' })
    expect((await boots(1)).created).toEqual(['', '', ''])
  })

  test('for what a setup command does in a recovery: the end names the setting', async () => {
    const setupCommand = '[ ! -e fill ] || head -c 900000000 /dev/zero > rest'
    const session = await start({ setupCommand })
    await runInside(session, 'touch fill')
    await host.checkpoint(session)
    await host.lose(session)
    await expect(host.provision(2)).rejects.toMatchObject({
      type: 'resource_limit',
      message: expect.stringContaining('sandbox.disk'),
    })
  })
})
