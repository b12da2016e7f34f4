const freeSpace =
  'The disk of the sandbox is full: have the agent free some of it, or give agents a larger one (sandbox.disk, sandbox.files).'
const otherName = 'The file system of the sandbox takes no such name: choose another one.'
const inTheWay = 'Something in the sandbox is in its way: have the agent remove it.'

const advice: Readonly<Record<string, string>> = {
  ENOSPC: freeSpace,
  EDQUOT: freeSpace,
  EFBIG:
    'It is larger than a file may be in a sandbox (sandbox.file_size): make it smaller, or give agents more.',
  ENAMETOOLONG: 'Its path is too long for the file system of the sandbox: choose a shorter one.',
  EINVAL: otherName,
  EILSEQ: otherName,
  lost: 'The store has not got its content any more: save the file once more.',
}

/**
 * What somebody can do about a file of theirs that a sandbox cannot have.
 *
 * @param code of the file system's error, such as `ENOSPC`; `lost`: the store has not got the content any more
 */
export const whatToDo = (code: string): string => advice[code] ?? inTheWay
