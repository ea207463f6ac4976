"""What can go wrong. A caller's mistakes are InputErrors; the machine's are DeviceErrors and CompileErrors."""


class Error(RuntimeError):
    """Anything that sycl_mat raises by itself."""


class InputError(Error, ValueError):
    """The caller passed something that cannot be multiplied. Nothing was computed or written."""


class DimensionError(InputError):
    """An operand has the wrong number of dimensions: "Dimension Error: …"."""


class SizeError(InputError):
    """Sizes that must agree do not: "Size Error: …"."""


class ParamsError(InputError):
    """A set of kernel constants breaks a constraint; the message names it and the nearest set that holds it."""


class UnsupportedError(Error, TypeError, NotImplementedError):
    """A dtype, or a combination of options, for which there is no kernel on this device."""


class DeviceError(Error):
    """No such device, a lost device, or a failure that the driver reports while a kernel runs."""


class OutOfMemoryError(DeviceError, MemoryError):
    """The device or the host has not enough memory for this product. Nothing leaks."""


class CompileError(Error):
    """The run-time compiler refused a kernel."""

    def __init__(self, message: str, log: str = "", constants: str = "") -> None:
        super().__init__(message)
        #: what the compiler wrote
        self.log = log
        #: the constants that were rendered into the kernel
        self.constants = constants

    def __reduce__(self) -> tuple[type["CompileError"], tuple[str, str, str]]:
        return (CompileError, (str(self), self.log, self.constants))
