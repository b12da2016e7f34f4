import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestRepository } from '@tutti/testkit'
import { expect, test } from 'vitest'
import { countUncommitted } from './uncommitted-changes.ts'

test('counts what is changed or untracked, and nothing where there is no repository', async () => {
  const repository = createTestRepository({ 'a.txt': 'one\n' })
  try {
    expect(await countUncommitted(repository.path)).toBe(0)
    writeFileSync(join(repository.path, 'a.txt'), 'two\n')
    writeFileSync(join(repository.path, 'new.txt'), '')
    expect(await countUncommitted(repository.path)).toBe(2)
    expect(await countUncommitted(join(tmpdir(), 'tutti-no-such-folder'))).toBe(0)
  } finally {
    repository.remove()
  }
})
