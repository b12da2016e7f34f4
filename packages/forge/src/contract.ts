import { beforeEach, describe, expect, test } from 'vitest'
import { maxBodyLength } from './limits.ts'
import type { Forge, NewPullRequest } from './port.ts'

const never = new AbortController().signal
const owner = 'owner-1'

const request = (change: Partial<NewPullRequest> = {}): NewPullRequest => ({
  head: 'tutti/fix',
  headCommit: '1'.repeat(40),
  base: 'trunk',
  baseCommit: '0'.repeat(40),
  title: 'Fix it',
  body: 'Because.\n',
  draft: false,
  source: 'en-00000000-0000-7000-8000-000000000001',
  ...change,
})

export interface ForgeUnderTest {
  readonly forge: Forge
  /** A repository that the forge knows, with `trunk` as default branch and no pull request. */
  readonly repository: string
}

/** What every forge must do. */
export function testForgeContract(name: string, createForge: () => Promise<ForgeUnderTest>): void {
  describe(`forge: ${name}`, () => {
    let forge: Forge
    let repository: string
    beforeEach(async () => {
      ;({ forge, repository } = await createForge())
    })

    test('knows the default branch, whatever its name', async () => {
      expect(await forge.defaultBranch(owner, repository, never)).toBe('trunk')
    })

    test('DEL-02 has one open pull request per head and base, also when many ask at once', async () => {
      expect(await forge.findOpen(owner, repository, 'tutti/fix', 'trunk', never)).toBeUndefined()
      const made = await Promise.all(
        Array.from({ length: 5 }, () => forge.create(owner, repository, request(), never)),
      )
      expect(new Set(made.map(({ number }) => number)).size).toBe(1)
      const [first] = made
      const again = await forge.create(owner, repository, request({ headCommit: '2'.repeat(40) }), never)
      expect(again).toMatchObject({ number: first!.number, url: first!.url, headCommit: '2'.repeat(40) })
      expect(await forge.findOpen(owner, repository, 'tutti/fix', 'trunk', never)).toEqual(again)
      const other = await forge.create(owner, repository, request({ head: 'tutti/other' }), never)
      expect(other.number).not.toBe(first!.number)
    })

    test('gives back what was created, and says not_found for what was not', async () => {
      const made = await forge.create(owner, repository, request({ draft: true }), never)
      expect(made).toMatchObject({
        title: 'Fix it',
        body: 'Because.\n',
        draft: true,
        state: 'open',
        base: 'trunk',
      })
      expect(await forge.get(owner, repository, made.number, never)).toEqual(made)
      await expect(forge.get(owner, repository, made.number + 99, never)).rejects.toMatchObject({
        code: 'not_found',
      })
    })

    test('changes only what an update names', async () => {
      const made = await forge.create(owner, repository, request(), never)
      const changed = await forge.update(owner, repository, made.number, { title: 'Better' }, never)
      expect(changed).toEqual({ ...made, title: 'Better' })
    })

    test('cuts a body that is too long, and says so in it', async () => {
      const made = await forge.create(owner, repository, request({ body: 'x\n'.repeat(50_000) }), never)
      expect(made.body.length).toBeLessThanOrEqual(maxBodyLength)
      expect(made.body).toMatch(/was cut here/)
    })

    test('takes a comment', async () => {
      const made = await forge.create(owner, repository, request(), never)
      await forge.comment(owner, repository, made.number, 'The report', never)
      expect(await forge.get(owner, repository, made.number, never)).toMatchObject({ state: 'open' })
    })
  })
}
