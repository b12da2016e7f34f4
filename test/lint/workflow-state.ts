/** One place in a workflow source that a replay cannot repeat, or that two runs in one process would share. */
export type Finding = { line: number; why: string }

const MUTABLE = /^(?:export\s+)?(?:let|var)\s/
const COLLECTION =
  /^(?:export\s+)?const\s+\w+(?:\s*:[^=]+)?\s*=\s*new\s+(?:Map|Set|WeakMap|WeakSet|Array)\b(?!.*\bReadonly(?:Map|Set)\b)/
const LOADED_CLOCK = /^\S.*\b(?:Date\.now|new Date|Date)\(/
const UNSAFE =
  /\b(?:Temporal\.\w+|performance\.now|Math\.random|crypto\.\w+|setInterval|setImmediate|process\.\w+)/
const PATCHED = /\bglobalThis\.\w+\s*=(?!=)/

/**
 * Reads one workflow file line by line: a workflow has no module-level mutable state, does not use what Temporal's sandbox
 * leaves as it is or a reader cannot tell (the global `Temporal`, chance, the process), and changes no global. `Date` is
 * workflow time while a workflow runs, but not while its module is loaded. Top level is told by indentation, which the
 * formatter guarantees.
 */
export function findUnsafeWorkflowCode(source: string): Finding[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, ' '))
  return code.split('\n').flatMap((text, index) => {
    const bare = text.replace(/\/\/.*$/, '').replaceAll(/'(?:[^'\\]|\\.)*'/g, "''")
    const found: Finding[] = []
    const add = (why: string) => found.push({ line: index + 1, why })
    if (MUTABLE.test(bare) || COLLECTION.test(bare)) add('mutable state at module level')
    if (LOADED_CLOCK.test(bare)) add('a clock read while the module is loaded')
    if (UNSAFE.test(bare)) add('a global clock, chance or process')
    if (PATCHED.test(bare)) add('a changed global')
    return found
  })
}
